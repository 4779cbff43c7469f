#include "kernels/core/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/core/axes.h"
#include "kernels/core/version_name.h"

namespace lloyd {
namespace {

// A function, so that the registry exists before the first registration, whatever the order of
// initialisation.
std::vector<RegisteredVersion>& registry() {
  static std::vector<RegisteredVersion> instance;
  return instance;
}

// Names that were registered twice. What is wrong is said by registration_errors(), because an
// exception before main() would end the program.
std::vector<std::string>& taken_names() {
  static std::vector<std::string> instance;
  return instance;
}

bool insert(RegisteredVersion version) {
  auto& all = registry();
  const std::string& name = version.info.name;
  const auto at = std::lower_bound(
      all.begin(), all.end(), name,
      [](const RegisteredVersion& a, const std::string& b) { return a.info.name < b; });
  if (at != all.end() && at->info.name == name) {
    taken_names().push_back(name);
    return false;
  }
  all.insert(at, std::move(version));
  return true;
}

std::vector<std::string> tunables() {
  std::vector<std::string> names;
  for (const AxisInfo& axis : kAxes)
    if (axis.tunable != nullptr) names.emplace_back(axis.name);
  return names;
}

}  // namespace

std::vector<std::string> registration_errors() {
  std::vector<std::string> errors;
  for (const std::string& name : taken_names())
    errors.push_back(
        fmt::format("two versions are named {}; change .name in one of their files", name));
  const std::vector<std::string> known = tunables();
  for (const RegisteredVersion& version : registry()) {
    const VersionInfo& info = version.info;
    if (!is_version_name(info.name))
      errors.push_back(fmt::format(
          "version '{}': a .name has 1 to {} letters, digits, '_' and '-', the first a letter or "
          "digit",
          info.name, kLongestVersionName));
    for (const std::string& axis : info.axes)
      if (std::ranges::find(known, axis) == known.end())
        errors.push_back(fmt::format("version {}: .axes has '{}'; it may have {}", info.name, axis,
                                     fmt::join(known, ", ")));
    if (!info.parent.empty() && find_version(info.parent) == nullptr)
      errors.push_back(
          fmt::format("version {}: its .parent '{}' is no version; leave it empty, or correct it",
                      info.name, info.parent));
  }
  return errors;
}

std::string_view to_string(Precision precision) {
  switch (precision) {
#define LLOYD_PRECISION(name, bits) \
  case Precision::name:             \
    return #name;
#include "kernels/core/precisions.inc"
  }
  throw std::logic_error("unknown precision");
}

std::optional<Precision> parse_precision(std::string_view name) {
  for (const Precision precision : kPrecisions)
    if (to_string(precision) == name) return precision;
  return std::nullopt;
}

double unit_roundoff(Precision precision) {
  constexpr auto kBits = std::to_array<int>({
#define LLOYD_PRECISION(name, bits) bits,
#include "kernels/core/precisions.inc"
  });
  return std::ldexp(1.0, -kBits.at(static_cast<std::size_t>(precision)));
}

std::string_view to_string(Backend backend) { return backend == Backend::cuda ? "cuda" : "cpu"; }

std::vector<double> Context::centroid_memory(std::size_t count) const {
  if (centroid_buffer == nullptr || centroid_buffer->size() != count)
    return std::vector<double>(count);
  return std::exchange(*centroid_buffer, {});
}

std::vector<std::int32_t> LabelBuffer::widened() const {
  std::vector<std::int32_t> labels(size_);
  const auto widen = [&](auto narrow) {
    for (std::size_t i = 0; i < size_; ++i) {
      std::memcpy(&narrow, memory_.data() + i * sizeof narrow, sizeof narrow);
      labels[i] = narrow;
    }
  };
  if (width_ == 1)
    widen(std::uint8_t{});
  else if (width_ == 2)
    widen(std::uint16_t{});
  else
    widen(std::int32_t{});
  return labels;
}

Context::Range::Range(Context& context, const char* phase, int iteration)
    : context_(&context), is_phase_(phase != nullptr) {
  for (RangeObserver* observer : context.observers)
    is_phase_ ? observer->begin_phase(phase) : observer->begin_iteration(iteration);
}

Context::Range::~Range() {
  if (context_ == nullptr) return;
  auto& observers = context_->observers;
  for (auto it = observers.rbegin(); it != observers.rend(); ++it)
    is_phase_ ? (*it)->end_phase() : (*it)->end_iteration();
}

bool register_version(VersionInfo info, VersionFactory make) {
  return insert({std::move(info), std::move(make), ""});
}

bool register_unavailable(VersionInfo info, std::string reason) {
  return insert({std::move(info), nullptr, std::move(reason)});
}

bool register_launched(VersionInfo info) { return insert({std::move(info), nullptr, "", true}); }

const std::vector<RegisteredVersion>& versions() { return registry(); }

const RegisteredVersion* find_version(std::string_view name) {
  for (const RegisteredVersion& version : registry())
    if (version.info.name == name) return &version;
  return nullptr;
}

}  // namespace lloyd
