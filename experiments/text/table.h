// A table that fits the terminal.
#pragma once

#include <string>
#include <vector>

#include "experiments/text/terminal.h"

namespace lloyd {

/// Columns of text under a line of headings. If the table is wider than the terminal, its cells
/// take several lines, the widest columns first. Columns without any text are left out.
class Table {
 public:
  struct Column {
    std::string head;
    bool right = false;  // numbers
  };
  struct Cell {
    std::string text;  // escaped for the terminal
    Colour colour = Colour::none;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// `cells`: as many as there are columns. `note`: printed below the row, if it is not empty; in
  /// the row's line where the width has no limit.
  void add(std::vector<Cell> cells, std::string note = "");
  std::string text(const Terminal& terminal) const;

 private:
  struct Row {
    std::vector<Cell> cells;
    std::string note;
  };
  Table without_empty_columns() const;
  std::string all_columns(const Terminal& terminal) const;
  std::vector<std::size_t> widths(const Terminal& terminal) const;
  /// The widest line of a column that is wrapped at `width`.
  std::size_t widest_line(std::size_t column, std::size_t width) const;
  std::string line(const std::vector<Cell>& cells, const std::vector<std::size_t>& widths,
                   const Terminal& terminal) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace lloyd
