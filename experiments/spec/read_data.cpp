#include <fmt/format.h>

#include <limits>
#include <system_error>

#include "data/sources/dataset.h"
#include "data/sources/generators.h"
#include "experiments/spec/draft.h"
#include "experiments/text/text.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFileKeys = {"file", "format", "header", "index_column",
                                            "label_column"};

/// Reads where the points come from: a generator or a file.
class DataReader {
 public:
  explicit DataReader(Draft& draft)
      : draft_(draft), errors_(draft.errors), yaml_(draft.yaml), spec_(draft.spec) {}

  void read(const Section& root) {
    std::vector<std::string> known = {"generator", "seed"};
    for (const auto& generator : data::generators())
      for (const std::string& key : generator.keys)
        if (!contains(known, key)) known.push_back(key);
    known.insert(known.end(), kFileKeys.begin(), kFileKeys.end());
    const auto section = yaml_.section(root, "data", known);
    if (!section) return;

    const Entry* generator = section->find("generator");
    const Entry* file = section->find("file");
    if (generator != nullptr && file != nullptr) {
      errors_.add(std::max(generator, file)->key_place,
                  "data has both a generator and a file; keep one of them");
      return;
    }
    if (generator == nullptr && file == nullptr) {
      errors_.add(section->place, "data needs either a generator or a file");
      return;
    }
    file != nullptr ? read_file_source(*section, *file) : read_generator(*section);
  }

 private:
  void read_generator(const Section& section) {
    const std::size_t before = errors_.count();
    std::vector<std::string> names;
    for (const auto& info : data::generators()) names.push_back(info.name);
    yaml_.choice(section, "generator", "generator", names, spec_.data.generator);
    for (const auto& info : data::generators()) {
      if (info.name != spec_.data.generator) continue;
      std::vector<std::string> own = {"seed"};
      own.insert(own.end(), info.keys.begin(), info.keys.end());
      for (const Entry& entry : section.entries)
        if (entry.key != "generator" && !contains(own, entry.key))
          errors_.add(entry.key_place,
                      fmt::format("generator '{}' has no key '{}'; its keys are {}", info.name,
                                  entry.key, join(own)));
    }
    yaml_.seed(section, "seed", spec_.data.seed);
    yaml_.whole(section, "centers", 1, spec_.data.centers);
    yaml_.real(section, "sigma", Sign::not_negative, spec_.data.sigma);
    read_range(section);
    if (errors_.count() > before) return;
    try {
      data::generate(spec_.data, 1, 1, 1);  // what only the generator knows about its options
    } catch (const data::DataError& error) {
      errors_.add(section.place, fmt::format("data: {}", error.what()));
    }
  }

  void read_range(const Section& section) {
    const Entry* entry = section.find("range");
    if (entry == nullptr) return;
    if (!entry->value.IsSequence() || entry->value.size() != 2) {
      errors_.add(entry->place, "data.range must be a list of two numbers, as in [0, 1]");
      return;
    }
    spec_.data.low =
        yaml_.real(entry->value[0], "data.range", place_of(entry->value[0]), Sign::any);
    spec_.data.high =
        yaml_.real(entry->value[1], "data.range", place_of(entry->value[1]), Sign::any);
    if (spec_.data.low && spec_.data.high && !(*spec_.data.low < *spec_.data.high))
      errors_.add(entry->place,
                  fmt::format("data.range must go from low to high, not from {} to {}",
                              entry->value[0].Scalar(), entry->value[1].Scalar()));
  }

  void read_file_source(const Section& section, const Entry& file) {
    draft_.has_file = true;
    const std::size_t before = errors_.count();
    for (const Entry& entry : section.entries)
      if (!contains(kFileKeys, entry.key))
        errors_.add(entry.key_place, fmt::format("a data file has no key '{}'; its keys are {}",
                                                 entry.key, join(kFileKeys)));
    yaml_.text(section, "file", spec_.data_file);
    yaml_.choice(section, "format", "format", data::formats(), spec_.data.format);
    yaml_.flag(section, "header", spec_.data.header);
    yaml_.whole(section, "index_column", 0, spec_.data.index_column);
    yaml_.whole(section, "label_column", std::numeric_limits<int>::min(), spec_.data.label_column);
    if (errors_.count() == before)
      draft_.data_extent = read_extent(draft_, spec_.data_file, file, spec_.data);
    if (draft_.data_extent) spec_.data_extent = {draft_.data_extent->n, draft_.data_extent->dim};
  }

  Draft& draft_;
  Errors& errors_;
  YamlReader& yaml_;
  Spec& spec_;
};

}  // namespace

std::optional<FileExtent> read_extent(Draft& draft, const std::string& file, const Entry& entry,
                                      data::Source& source) {
  const fs::path beside = draft.spec.path.parent_path() / file;
  std::vector<fs::path> places = {beside, file};
  if (const auto before = draft.found.find(file); before != draft.found.end())
    places.insert(draft.typed ? places.end() : places.begin(), before->second);
  std::error_code ignored;
  const auto place = std::find_if(places.begin(), places.end(),
                                  [&](const fs::path& path) { return fs::exists(path, ignored); });
  if (file.empty() || place == places.end()) {
    const std::string other = beside == fs::path(file) ? "" : fmt::format(" and '{}'", file);
    draft.errors.add(entry.place, fmt::format("{} {} was not found; looked for '{}'{}", entry.label,
                                              in_quotes(file), beside.string(), other));
    return std::nullopt;
  }
  try {
    // Read under the short path, which is the one that a message about the file should show.
    const fs::path& found = *place;
    source.file = found;
    const data::Dataset rows = data::read_file(source);
    source.file = fs::absolute(found).lexically_normal();
    if (invalid_utf8(source.file.string()) != std::string::npos) {
      draft.errors.add(entry.place, fmt::format("{} has a path that is not UTF-8: {}; rename it",
                                                in_quotes(file), source.file.string()));
      return std::nullopt;
    }
    return FileExtent{rows.n(), rows.dim(), entry.place, found.filename().string()};
  } catch (const data::DataError& error) {
    draft.errors.add(entry.place, fmt::format("{} cannot be used: {}", entry.label, error.what()));
    return std::nullopt;
  }
}

void read_data(Draft& draft, const Section& root) { DataReader(draft).read(root); }
}  // namespace lloyd
