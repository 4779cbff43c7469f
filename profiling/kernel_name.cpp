#include "profiling/kernel_name.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace lloyd::profiling {
namespace {

constexpr std::size_t kLongestArguments = 40;

// FNV-1a with 64 bits. Unlike std::hash, it gives the same value on every machine.
std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 14695981039346656037u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return value;
}

}  // namespace

std::string kernel_name(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0) return symbol;
  std::string name = demangled.get();
  const std::string anonymous = "(anonymous namespace)::";
  for (std::size_t at; (at = name.find(anonymous)) != std::string::npos;)
    name.erase(at, anonymous.size());
  // The parameters begin at the first parenthesis outside template arguments. A template's return
  // type ends at the last blank before them.
  int depth = 0;
  std::size_t begin = 0, arguments = std::string::npos, end = name.size();
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' && depth++ == 0) arguments = i;
    if (name[i] == '>') --depth;
    if (depth > 0) continue;
    if (name[i] == ' ') begin = i + 1;
    if (name[i] == '(') {
      end = i;
      break;
    }
  }
  if (arguments != std::string::npos && arguments > begin && end - arguments > kLongestArguments)
    return fmt::format("{}<~{:06x}>", name.substr(begin, arguments - begin),
                       hash(symbol) & 0xffffff);
  return name.substr(begin, end - begin);
}

}  // namespace lloyd::profiling
