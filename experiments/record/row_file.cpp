#include "experiments/record/row_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "experiments/record/run_folder.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

// Our rows have a few thousand bytes. Without a bound, a file of zeros would fill the memory, and a
// row with a million keys would take minutes, because keys are looked up one by one.
constexpr std::size_t kLongestRow = 1 << 18;

/// Reads a C library file line by line.
class Lines {
 public:
  explicit Lines(std::FILE* file) : file_(file) {}

  bool next() {
    ++number_;
    text_ = {};
    for (std::size_t searched = begin_; !whole_line(searched);) {
      searched = block_.size() - begin_;
      block_.erase(0, std::exchange(begin_, 0));
      // If a line is too long, only its beginning is kept.
      searched = std::min(searched, kLongestRow + 1);
      block_.resize(searched);
      if (!fill()) {
        text_ = block_;
        begin_ = block_.size();
        break;
      }
    }
    return !text_.empty();
  }
  /// Includes the newline, unless the last line has none or the line is too long.
  std::string_view text() const { return text_; }
  bool too_long() const { return text_.size() > kLongestRow; }
  bool torn() const { return !too_long() && text_.back() != '\n'; }
  std::size_t number() const { return number_; }

 private:
  bool whole_line(std::size_t searched) {
    const std::size_t newline = block_.find('\n', searched);
    if (newline == std::string::npos) return false;
    text_ = std::string_view(block_).substr(begin_, newline + 1 - begin_);
    if (too_long()) text_ = text_.substr(0, kLongestRow + 1);
    begin_ = newline + 1;
    return true;
  }
  bool fill() {
    constexpr std::size_t kBlock = 1 << 16;
    const std::size_t before = block_.size();
    block_.resize(before + kBlock);
    block_.resize(before + std::fread(block_.data() + before, 1, kBlock, file_));
    return block_.size() > before;
  }

  std::FILE* file_;
  std::string block_;
  std::size_t begin_ = 0;  // start of the unread part
  std::size_t number_ = 0;
  std::string_view text_;
};

RunDirectoryError damaged_row(const fs::path& file, std::size_t line, const std::string& how) {
  return RunDirectoryError(
      fmt::format("{}:{}: {}; the file was edited or damaged", file.string(), line, how));
}

}  // namespace

void for_each_row(const PlainFolder& folder, const std::string& name,
                  const std::function<void(const Row&)>& visit, TornLine torn) {
  const InputFile file = folder.input(name);
  if (!file) return;
  Lines lines(file.get());
  while (lines.next()) {
    if (torn == TornLine::skip && lines.torn()) return;
    if (lines.too_long() || nested_too_deeply(lines.text()))
      throw damaged_row(folder.path() / name, lines.number(),
                        lines.too_long() ? "is longer than any row" : "is nested too deeply");
    try {
      const Row row = Row::parse(lines.text());
      if (row.contains("group"))  // what `python -m analysis compact` writes
        throw RunDirectoryError(fmt::format(
            "{}: was compacted for a recording; a compacted run cannot be resumed, start a new one",
            (folder.path() / name).string()));
      visit(row);
    } catch (const Row::parse_error&) {
      throw damaged_row(folder.path() / name, lines.number(), "is not JSON");
    } catch (const Row::exception& error) {
      throw damaged_row(folder.path() / name, lines.number(),
                        fmt::format("is not a row of this file ({})", error.what()));
    } catch (const WrongRow& error) {
      throw damaged_row(folder.path() / name, lines.number(), error.what());
    }
  }
}

void drop_torn_line(const PlainFolder& folder, const std::string& name) {
  off_t whole = 0;
  std::size_t damaged = 0;  // number of the damaged line; 0: none
  {
    const InputFile file = folder.input(name);
    if (!file) return;
    Lines lines(file.get());
    while (lines.next()) {
      if (damaged > 0) throw damaged_row(folder.path() / name, damaged, "is not JSON");
      if (lines.text().back() != '\n' || lines.too_long() || !Row::accept(lines.text()))
        damaged = lines.number();
      else
        whole += static_cast<off_t>(lines.text().size());
    }
  }
  if (damaged > 0) folder.shorten(name, whole);
}

}  // namespace lloyd
