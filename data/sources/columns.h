// Which columns of a text file are read, and where their numbers go.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/sources/dataset.h"
#include "data/sources/text_row.h"

namespace lloyd::data {

/// A header: the line and its fields.
struct Header {
  Line line;
  std::vector<std::string_view> fields;
};

/// Whether a key of the source gives a column by its name.
bool uses_names(const Source& source);

/// Per column the position of its number in a row of the data set; -1: it is left out. `names` is
/// empty or has one name per column. Throws DataError for a column that does not exist or is not
/// clear, at the `header` if there is one.
std::vector<int> column_positions(const Grammar& grammar, const Source& source,
                                  const Header* header, const std::vector<std::string>& names,
                                  std::size_t columns);

/// Refuses a column whose name says that it is no coordinate. Its numbers would be taken for one
/// silently.
void refuse_ids(const Grammar& grammar, const Header& header, const Shape& shape);

}  // namespace lloyd::data
