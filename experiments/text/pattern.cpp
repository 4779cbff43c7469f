#include "experiments/text/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "experiments/text/text.h"

namespace lloyd {
namespace {

// A longer pattern must be a mistake, such as the contents of a file instead of its name.
constexpr std::size_t kLongestPattern = 10'000;

// RE2's message ends with the part of the text that is wrong. A position is easier to find.
std::string complaint(const RE2& expression, const std::string& text) {
  std::string what = expression.error();
  const std::string& part = expression.error_arg();
  if (part.empty()) return what;
  if (what.ends_with(": " + part)) what.resize(what.size() - part.size() - 2);
  const std::size_t at = text.find(part);
  if (at == std::string::npos || part == text) return what;
  return fmt::format("{}, {} at character {}", what, in_quotes(part), at + 1);
}

}  // namespace

Pattern::Pattern(const std::string& text) {
  if (text.size() > kLongestPattern)
    throw Error(fmt::format("{} is too long for a regular expression: {} bytes, at most {}",
                            in_quotes(text), text.size(), kLongestPattern));
  RE2::Options options;
  options.set_log_errors(false);
  expression_ = std::make_unique<RE2>(text, options);
  if (!expression_->ok())
    throw Error(fmt::format("{} is not a regular expression: {}", in_quotes(text),
                            complaint(*expression_, text)));
}

Pattern::~Pattern() = default;

bool Pattern::found_in(const std::string& text) const {
  return RE2::PartialMatch(text, *expression_);
}

}  // namespace lloyd
