#include "experiments/text/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "experiments/text/text.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

constexpr std::size_t kNarrowest = 20, kUsual = 80;

std::string_view text_of_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::size_t window_width(int descriptor) {
  if (const auto given = parse_whole(std::string(text_of_variable("COLUMNS"))).as_int64();
      given && *given > 0)
    return static_cast<std::size_t>(*given);
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The bytes of the first `width` columns.
std::size_t bytes_of(std::string_view text, std::size_t width) {
  std::size_t at = 0;
  for (; at < text.size() && width > 0; --width)
    for (++at; at < text.size() && is_continuation(text[at]);) ++at;
  return at;
}

/// Where to break a word that is longer than `width`: behind the last mark that fits, else
/// anywhere.
std::size_t break_of(std::string_view word, std::size_t width) {
  const std::size_t most = bytes_of(word, width);
  const std::size_t mark = word.substr(0, most).find_last_of("/_,");
  return mark == std::string_view::npos ? most : mark + 1;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether `text` begins with a unit of time, which belongs to the number before it.
bool begins_with_unit(std::string_view text) {
  constexpr std::string_view kUnits[] = {"µs", "ms", "s", "min", "h"};
  const std::size_t end = std::min(text.find_first_of(" ,]);"), text.size());
  return std::ranges::find(kUnits, text.substr(0, end)) != std::end(kUnits);
}

}  // namespace

std::size_t word_end(std::string_view text) {
  std::size_t end = text.find(' ');
  while (end != std::string_view::npos && end > 0 && is_digit(text[end - 1]) &&
         begins_with_unit(text.substr(end + 1)))
    end = text.find(' ', end + 1);
  return std::min(end, text.size());
}

Terminal terminal(int descriptor) {
  if (isatty(descriptor) == 0) return {};
  const bool dumb = text_of_variable("TERM") == "dumb";
  return {std::max(kNarrowest, window_width(descriptor)),
          !dumb && text_of_variable("NO_COLOR").empty(), !dumb};
}

std::string coloured(const std::string& text, Colour colour, const Terminal& terminal) {
  if (!terminal.colours || colour == Colour::none || text.empty()) return text;
  const char* code = colour == Colour::good      ? "32"
                     : colour == Colour::warning ? "33"
                     : colour == Colour::bad     ? "31"
                     : colour == Colour::faint   ? "2"
                                                 : "1";
  return "\033[" + std::string(code) + "m" + text + "\033[0m";
}

Colour colour_of(std::string_view status) {
  if (status == "ok" || status == "yes") return Colour::good;
  return status::is_failure(status) || status == "missing" ? Colour::bad : Colour::warning;
}

std::size_t columns(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, is_continuation));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, columns(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::string cut(std::string_view text, std::size_t width) {
  if (columns(text) <= width) return std::string(text);
  return width == 0 ? "" : std::string(text.substr(0, bytes_of(text, width - 1))) + "…";
}

std::vector<std::string> wrapped(std::string_view text, std::optional<std::size_t> width) {
  if (!width) return {std::string(text)};
  const std::size_t most = std::max<std::size_t>(*width, 1);
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = word_end(text);
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const std::size_t used = columns(lines.back());
    if (used > 0 && used + 1 + columns(word) <= most) {
      lines.back() += ' ';
      lines.back() += word;
      continue;
    }
    if (used > 0) lines.emplace_back();
    for (; columns(word) > most; lines.emplace_back()) {
      const std::size_t at = break_of(word, most);
      lines.back() = word.substr(0, at);
      word.remove_prefix(at);
    }
    lines.back() = word;
  }
  return lines;
}

std::string hanging(const std::string& first, std::size_t indent, std::string_view text,
                    std::optional<std::size_t> width) {
  std::string result = padded(first, indent);
  // What reaches into the text's columns has a line of its own.
  if (columns(first) >= indent && !first.empty() && indent > 0)
    result = first + '\n' + std::string(indent, ' ');
  const auto left = width ? std::optional(*width - std::min(*width, indent)) : std::nullopt;
  const std::string separator = '\n' + std::string(indent, ' ');
  return result + join(wrapped(text, left), separator) + '\n';
}

}  // namespace lloyd
