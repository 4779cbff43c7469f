#include "experiments/text/table.h"

#include <algorithm>
#include <numeric>

namespace lloyd {
namespace {

constexpr std::size_t kGap = 2;

/// The widest part of `text` that wrapped() would not break if it had the choice.
std::size_t widest_part(std::string_view text) {
  std::size_t widest = 0;
  while (!text.empty()) {
    std::string_view word = text.substr(0, word_end(text));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    while (!word.empty()) {
      const std::size_t mark = std::min(word.find_first_of("/_,"), word.size() - 1);
      widest = std::max(widest, columns(word.substr(0, mark + 1)));
      word.remove_prefix(mark + 1);
    }
  }
  return widest;
}

std::size_t total(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + kGap * (widths.size() - 1);
}

/// Takes a column from the widest of `widths` that is above its limit until all fit.
void shrink(std::vector<std::size_t>& widths, const std::vector<std::size_t>& limits,
            std::size_t available) {
  while (total(widths) > available) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (widths[i] > limits[i] && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
    if (widest == nullptr) return;
    --*widest;
  }
}

}  // namespace

void Table::add(std::vector<Cell> cells, std::string note) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), std::move(note)});
}

std::vector<std::size_t> Table::widths(const Terminal& terminal) const {
  std::vector<std::size_t> natural, least;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    natural.push_back(columns(columns_[i].head));
    least.push_back(widest_part(columns_[i].head));
    for (const Row& row : rows_) {
      natural[i] = std::max(natural[i], columns(row.cells[i].text));
      least[i] = std::max(least[i], widest_part(row.cells[i].text));
    }
  }
  if (!terminal.width || total(natural) <= *terminal.width) return natural;
  std::vector<std::size_t> widths = natural;
  shrink(widths, least, *terminal.width);
  shrink(widths, std::vector<std::size_t>(widths.size(), 1), *terminal.width);
  // Words leave blanks at the ends of lines. Columns that become whole by what these free get it.
  for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = widest_line(i, widths[i]);
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (total(widths) - widths[i] + natural[i] <= *terminal.width) widths[i] = natural[i];
  return widths;
}

std::size_t Table::widest_line(std::size_t column, std::size_t width) const {
  std::size_t widest = 1;
  const auto add = [&](const std::string& text) {
    for (const std::string& line : wrapped(text, width)) widest = std::max(widest, columns(line));
  };
  add(columns_[column].head);
  for (const Row& row : rows_) add(row.cells[column].text);
  return widest;
}

std::string Table::line(const std::vector<Cell>& cells, const std::vector<std::size_t>& widths,
                        const Terminal& terminal) const {
  std::vector<std::vector<std::string>> lines;
  std::size_t height = 1;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    lines.push_back(wrapped(cells[i].text, widths[i]));
    height = std::max(height, lines[i].size());
  }
  std::string text;
  for (std::size_t y = 0; y < height; ++y) {
    std::string row;
    std::size_t blanks = 0;  // owed before the next word: none end a line
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string part = y < lines[i].size() ? lines[i][y] : "";
      const std::size_t rest = widths[i] - std::min(widths[i], columns(part));
      if (!part.empty()) {
        row += std::string(blanks + (columns_[i].right ? rest : 0), ' ') +
               coloured(part, cells[i].colour, terminal);
        blanks = 0;
      }
      blanks += kGap + (part.empty() ? widths[i] : columns_[i].right ? 0 : rest);
    }
    text += row + '\n';
  }
  return text;
}

Table Table::without_empty_columns() const {
  std::vector<bool> empty(columns_.size(), !rows_.empty());
  for (const Row& row : rows_)
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      empty[i] = empty[i] && row.cells[i].text.empty();
  const auto kept = [&](const auto& all) {
    std::decay_t<decltype(all)> some;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!empty[i]) some.push_back(all[i]);
    return some;
  };
  Table table(kept(columns_));
  for (const Row& row : rows_) table.rows_.push_back({kept(row.cells), row.note});
  return table;
}

std::string Table::text(const Terminal& terminal) const {
  return without_empty_columns().all_columns(terminal);
}

std::string Table::all_columns(const Terminal& terminal) const {
  const std::vector<std::size_t> wide = widths(terminal);
  std::vector<Cell> heads;
  for (const Column& column : columns_) heads.push_back({column.head, Colour::strong});
  std::string text = line(heads, wide, terminal);
  for (const Row& row : rows_) {
    text += line(row.cells, wide, terminal);
    if (row.note.empty()) continue;
    if (!terminal.width) {
      text.back() = ' ';
      text += ' ' + row.note + '\n';
    } else {
      for (const std::string& part : wrapped(row.note, *terminal.width - 4))
        text += "    " + coloured(part, Colour::faint, terminal) + '\n';
    }
  }
  return text;
}

}  // namespace lloyd
