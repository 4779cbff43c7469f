#include "kernels/fast/auto/measured.h"

#include <set>
#include <string_view>
#include <tuple>

namespace lloyd::fast {
namespace {

using Key = std::tuple<std::string_view, Precision, std::int64_t, int, int>;
Key key(const Measured& m) { return {m.version, m.precision, m.n, m.k, m.dim}; }

bool widens(const Measured& m) {
  const RegisteredVersion* version = find_version(m.version);
  return version != nullptr && version->info.widens_halves;
}

}  // namespace

std::vector<Measured> with_16_bits(std::span<const Measured> table) {
  std::vector<Measured> all(table.begin(), table.end());
  std::set<Key> known;
  for (const Measured& m : table) known.insert(key(m));
  const auto borrow = [&](const Measured& from, Precision precision) {
    Measured row = from;
    row.precision = precision;
    if (known.insert(key(row)).second) all.push_back(row);
  };
  for (const Measured& m : table) {
    if (m.precision == Precision::fp16) borrow(m, Precision::bf16);
    if (m.precision == Precision::bf16) borrow(m, Precision::fp16);
  }
  for (const Measured& m : table)
    if (m.precision == Precision::fp32 && widens(m))
      for (const Precision half : {Precision::fp16, Precision::bf16}) borrow(m, half);
  return all;
}

std::span<const Measured> measured() {
  static constexpr Measured kTable[] = {
#include "kernels/fast/auto/table.inc"
  };
  static const std::vector<Measured> all = with_16_bits(kTable);
  return all;
}

}  // namespace lloyd::fast
