// Fits text to the terminal that shows it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lloyd {

/// What a stream can show.
struct Terminal {
  std::optional<std::size_t> width;  // in columns; empty: no limit, because it is no terminal
  bool colours = false;
  bool live = false;  // a line may be overwritten
};

/// Asks the file descriptor and the environment. The width is COLUMNS, else the window's, else 80.
/// Colours are off if NO_COLOR is set and not empty (no-color.org), and on TERM=dumb.
Terminal terminal(int descriptor);

enum class Colour { none, good, warning, bad, faint, strong };
/// `text` in a colour where the terminal has colours.
std::string coloured(const std::string& text, Colour colour, const Terminal& terminal);
/// The colour of a point's status or a check's result ("ok", "failed", "warn").
Colour colour_of(std::string_view status);

/// How many columns `text` takes. Each code point counts as one, which is true for the letters that
/// we use.
std::size_t columns(std::string_view text);
/// `text` with blanks up to `width` columns, behind it or before it.
std::string padded(const std::string& text, std::size_t width, bool right = false);
/// The first `width` columns of `text`, the last of which is "…" if something is cut off.
std::string cut(std::string_view text, std::size_t width);
/// Where the first word of `text` ends. A number and its unit of time are one word.
std::size_t word_end(std::string_view text);
/// Lines of at most `width` columns (nullopt: one line). Breaks between words. A word that is
/// longer than a line is broken behind '/', '_' or ',', else anywhere.
std::vector<std::string> wrapped(std::string_view text, std::optional<std::size_t> width);
/// `first` and then `text`, wrapped so that all its lines begin at column `indent`. Ends with a
/// newline.
std::string hanging(const std::string& first, std::size_t indent, std::string_view text,
                    std::optional<std::size_t> width);

}  // namespace lloyd
