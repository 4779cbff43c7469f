// Reads data files and prints their content, for compare_readers.py. A request is a line
//   PATH <tab> FORMAT <tab> HEADER <tab> INDEX_COLUMN <tab> LABEL_COLUMN <tab> N <tab> DIM
//     <tab> DELIMITER <tab> DECIMAL <tab> COLUMNS <tab> ARRAY
// in which all fields except the path may be empty. A column is a number or =NAME, the character
// 0x1F separates columns, and a delimiter may be `tab`. The answer is a line `ok N DIM VALUES`,
// with the bits of the values in hex, or `error MESSAGE`.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "data/sources/dataset.h"

namespace {

lloyd::data::Column column(const std::string& text) {
  if (text[0] == '=') return text.substr(1);
  return std::stoi(text);
}

std::string answer(const std::vector<std::string>& fields) {
  lloyd::data::Source source;
  source.file = fields[0];
  source.format = fields[1];
  if (!fields[2].empty()) source.header = fields[2] == "1";
  if (!fields[3].empty()) source.index_column = column(fields[3]);
  if (!fields[4].empty()) source.label_column = column(fields[4]);
  if (!fields[7].empty()) source.delimiter = fields[7] == "tab" ? '\t' : fields[7][0];
  if (!fields[8].empty()) source.decimal = fields[8][0];
  std::istringstream columns(fields[9]);
  for (std::string each; std::getline(columns, each, '\x1f');)
    source.columns.push_back(column(each));
  source.array = fields[10];
  const auto number = [](const std::string& text) { return text.empty() ? 0 : std::stoi(text); };
  try {
    const lloyd::data::Dataset data =
        lloyd::data::load(source, number(fields[5]), number(fields[6]), 1);
    std::string text = fmt::format("ok {} {} ", data.n(), data.dim());
    for (const float value : data.values())
      fmt::format_to(std::back_inserter(text), "{:08x}", std::bit_cast<std::uint32_t>(value));
    return text;
  } catch (const lloyd::data::DataError& error) {
    std::string text = std::string("error ") + error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> fields;
    std::istringstream text(line);
    for (std::string field; std::getline(text, field, '\t');) fields.push_back(field);
    fields.resize(11);
    std::cout << answer(fields) << std::endl;
  }
}
