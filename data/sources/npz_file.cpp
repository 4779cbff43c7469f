// Reads an array of an npz archive: a zip archive with a member NAME.npy for each array
// (numpy.savez, numpy.savez_compressed).
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "data/sources/readers.h"
#include "data/sources/text.h"
#include "data/sources/zip_file.h"

namespace lloyd::data {

Dataset read_npz(const std::string& name, std::string_view bytes, const std::string& array,
                 Limits limits, int threads) {
  static constexpr std::string_view kEnding = ".npy";
  std::vector<ZipMember> arrays;
  std::vector<std::string> names;
  for (ZipMember& member : zip_members(name, bytes)) {
    if (!member.name.ends_with(kEnding)) continue;
    member.name.remove_suffix(kEnding.size());
    names.push_back(in_quotes(member.name));
    arrays.push_back(member);
  }
  if (arrays.empty()) throw DataError(fmt::format("{}: holds no arrays", name));
  const auto chosen = [&](const ZipMember& member) { return member.name == array; };
  const auto found =
      array.empty() ? arrays.begin() : std::find_if(arrays.begin(), arrays.end(), chosen);
  if (found == arrays.end())
    throw DataError(fmt::format("{}: holds no array {}; it has {}", name, in_quotes(array),
                                fmt::join(names, ", ")));
  if (array.empty() && arrays.size() > 1)
    throw DataError(fmt::format("{}: holds {} arrays; choose one with the key array: {}", name,
                                arrays.size(), fmt::join(names, ", ")));
  if (!array.empty() && std::count_if(arrays.begin(), arrays.end(), chosen) > 1)
    throw DataError(fmt::format("{}: holds several arrays {}", name, in_quotes(array)));
  ZipMember member = *found;
  const std::string label = fmt::format("{}[{}]", name, in_quotes(member.name));
  member.name = {member.name.data(), member.name.size() + kEnding.size()};
  const ZipContent content = zip_content(label, bytes, member);
  return read_npy(label, content.bytes, limits, threads);
}

}  // namespace lloyd::data
