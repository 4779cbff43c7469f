#include "data/sources/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "data/sources/text.h"

namespace lloyd::data {
namespace {

/// Finds the columns that a source names among those of a file.
class ColumnFinder {
 public:
  ColumnFinder(const Grammar& grammar, const Source& source, const Header* header,
               const std::vector<std::string>& names, std::size_t columns)
      : grammar_(grammar), source_(source), header_(header), names_(names), columns_(columns) {}

  std::vector<int> positions() const {
    std::vector<int> position(columns_, -1);
    const auto index = find("index_column", source_.index_column, false);
    const auto label = find("label_column", source_.label_column, true);
    int next = 0;
    for (const Column& column : source_.columns) {
      const std::size_t i = *find("columns", column, true);
      if (position[i] >= 0) fail(fmt::format("columns lists column {} twice", text(i)));
      if (i == index || i == label)
        fail(fmt::format("column {} is listed in columns and left out by {}", text(i),
                         i == index ? "index_column" : "label_column"));
      position[i] = next++;
    }
    for (std::size_t i = 0; source_.columns.empty() && i < columns_; ++i)
      if (i != index && i != label) position[i] = next++;
    if (next == 0) fail("no column is left to read");
    return position;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    if (header_ != nullptr) grammar_.fail(header_->line, header_->line.text.data(), reason);
    throw DataError(fmt::format("{}: {}", grammar_.file, reason));
  }
  /// A column as a message calls it.
  std::string text(std::size_t column) const {
    return names_.empty() ? std::to_string(column)
                          : fmt::format("{} ({})", column, in_quotes(names_[column]));
  }

  std::optional<std::size_t> find(const char* key, const std::optional<Column>& column,
                                  bool from_end) const {
    if (!column) return std::nullopt;
    if (const int* number = std::get_if<int>(&*column)) return numbered(key, *number, from_end);
    return named(key, std::get<std::string>(*column));
  }

  std::size_t numbered(const char* key, int number, bool from_end) const {
    const auto count = static_cast<std::int64_t>(columns_);
    const std::int64_t index = number < 0 && from_end ? count + number : number;
    if (index < 0 || index >= count)
      throw DataError(fmt::format(
          "{}: {} {} does not exist; the rows have {} {} ({} to {})", grammar_.file, key, number,
          columns_, columns_ == 1 ? "column" : "columns", from_end ? -count : 0, count - 1));
    const auto column = static_cast<std::size_t>(index);
    const auto same = std::find(names_.begin(), names_.end(), std::to_string(number));
    if (same != names_.end() && names_[column] != *same)
      fail(
          fmt::format("{0}: {1} may be the number or the name of a column; write the name in "
                      "quotes: \"{1}\" for column {2}, or \"{3}\" for column {4}",
                      key, number, same - names_.begin(), names_[column], column));
    return column;
  }

  std::size_t named(const char* key, const std::string& name) const {
    if (names_.empty())
      fail(
          fmt::format("{}: {} is a name, and there is no header; write the column's number, from "
                      "0",
                      key, in_quotes(name)));
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      std::vector<std::string> quoted;
      for (const std::string& each : names_) quoted.push_back(in_quotes(each));
      if (quoted.size() > 20) quoted.resize(20), quoted.emplace_back("…");
      fail(fmt::format("{}: no column is called {}; the columns are {}", key, in_quotes(name),
                       fmt::join(quoted, ", ")));
    }
    const auto second = std::find(found + 1, names_.end(), name);
    if (second != names_.end())
      fail(fmt::format("{}: columns {} and {} are both called {}; write the number", key,
                       found - names_.begin(), second - names_.begin(), in_quotes(name)));
    return static_cast<std::size_t>(found - names_.begin());
  }

  const Grammar& grammar_;
  const Source& source_;
  const Header* header_;
  const std::vector<std::string>& names_;  // empty, or one per column
  std::size_t columns_;
};

}  // namespace

bool uses_names(const Source& source) {
  const auto is_text = [](const Column& column) {
    return std::holds_alternative<std::string>(column);
  };
  return (source.index_column && is_text(*source.index_column)) ||
         (source.label_column && is_text(*source.label_column)) ||
         std::any_of(source.columns.begin(), source.columns.end(), is_text);
}

std::vector<int> column_positions(const Grammar& grammar, const Source& source,
                                  const Header* header, const std::vector<std::string>& names,
                                  std::size_t columns) {
  return ColumnFinder(grammar, source, header, names, columns).positions();
}

void refuse_ids(const Grammar& grammar, const Header& header, const Shape& shape) {
  static const std::vector<std::string> kIds = {"id", "index", "unnamed: 0"};
  static const std::vector<std::string> kLabels = {"label", "class", "target"};
  const auto contains = [](const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const bool named = std::any_of(shape.names.begin(), shape.names.end(),
                                 [](const std::string& name) { return !name.empty(); });
  for (std::size_t i = 0; i < shape.names.size(); ++i) {
    if (shape.position[i] < 0) continue;
    const std::string& name = shape.names[i];
    std::string lower = name;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    const bool unnamed = i == 0 && name.empty() && named;  // by pandas and R
    const bool id = unnamed || contains(kIds, lower);
    if (!id && !contains(kLabels, lower)) continue;
    // In a header of R the first column of the rows has no field.
    const std::size_t field = i - (shape.names.size() - header.fields.size());
    grammar.fail(header.line, header.fields[field].data(),
                 fmt::format("{} is not a coordinate, by its name; to leave the column out, set "
                             "{}: {}; to read it, list all columns to read in the key columns",
                             name.empty() ? "a column without a name" : in_quotes(name),
                             id ? "index_column" : "label_column", column_key(i, name)));
  }
}

}  // namespace lloyd::data
