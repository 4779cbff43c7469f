#include <fmt/format.h>

#include "experiments/spec/draft.h"
#include "experiments/text/text.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

constexpr std::size_t kLongestName = 64, kLongestTitle = 200;

/// The registered versions, and each family as a glob: what a user may have meant.
std::vector<std::string> version_words() {
  std::vector<std::string> words;
  for (const RegisteredVersion& version : versions()) {
    words.push_back(version.info.name);
    if (const std::string family = version.info.family + "_*"; !contains(words, family))
      words.push_back(family);
  }
  return words;
}

/// Reads the versions and the baseline, which is one of them.
class VersionsReader {
 public:
  explicit VersionsReader(Draft& draft)
      : draft_(draft),
        errors_(draft.errors),
        yaml_(draft.yaml),
        spec_(draft.spec),
        request_(draft.request) {}

  void read(const Section& root) {
    const std::size_t before = errors_.count();
    if (const Entry* entry = root.find("versions")) {
      const auto words = yaml_.words(*entry);
      if (words && entry->value.IsSequence() && entry->value.size() == 0)
        errors_.add(entry->place, "versions lists none; name at least one");
      for (const Word& word : words.value_or(std::vector<Word>{})) add_versions(word);
    }
    yaml_.read(root, "baseline", spec_.baseline);
    if (const Entry* entry = root.find("baseline"); entry != nullptr && entry->value.IsScalar())
      if (const std::string wrong = wrong_baseline(errors_.count() == before); !wrong.empty())
        errors_.add(entry->place, wrong);
    if (request_.versions.empty()) draft_.can_plan = false;
  }

 private:
  /// What is wrong with the baseline; empty if nothing is. If the versions are not `known` because
  /// of another error, it is not looked for among them.
  std::string wrong_baseline(bool known) const {
    const std::string& baseline = spec_.baseline;
    if (baseline == kBestCpu)
      return known && !has_cpu_version()
                 ? fmt::format("baseline '{}' needs a version on the CPU among the versions",
                               baseline)
                 : "";
    if (is_glob(baseline))
      return fmt::format("baseline {} is a pattern; name one version, or {}", in_quotes(baseline),
                         kBestCpu);
    if (find_version(baseline) == nullptr) {
      if (const std::string hint = suggestion(baseline, {std::string(kBestCpu)}); !hint.empty())
        return fmt::format("baseline: unknown {}{}", in_quotes(baseline), hint);
      return "baseline: " + unknown_version(baseline);
    }
    return known && !names_version(baseline)
               ? fmt::format("baseline '{}' is not among the versions; add it to them", baseline)
               : "";
  }

  bool has_cpu_version() const {
    return std::ranges::any_of(request_.versions, [](const RegisteredVersion* version) {
      return version->info.backend == Backend::cpu;
    });
  }

  void add_versions(const Word& word) {
    bool matched = false;
    for (const RegisteredVersion& version : versions()) {
      if (is_glob(word.text) ? !glob_match(word.text, version.info.name)
                             : word.text != version.info.name)
        continue;
      matched = true;
      if (!names_version(version.info.name)) request_.versions.push_back(&version);
    }
    if (!matched) errors_.add(word.place, unknown_version(word.text));
  }

  bool names_version(const std::string& name) const {
    return std::any_of(
        request_.versions.begin(), request_.versions.end(),
        [&](const RegisteredVersion* version) { return version->info.name == name; });
  }

  Draft& draft_;
  Errors& errors_;
  YamlReader& yaml_;
  Spec& spec_;
  PlanRequest& request_;
};

}  // namespace

bool is_glob(const std::string& text) { return text.find_first_of("*?") != std::string::npos; }

std::string unknown_version(const std::string& word) {
  const std::string hint = suggestion(word, version_words());
  // A version of the user's own is as unknown as a mistyped one.
  const char* all =
      "; --list-versions shows them all; one of your own needs a line in kernels/CMakeLists.txt "
      "and a build, or LLOYDBENCH_VERSIONS";
  return fmt::format("{} {}{}", is_glob(word) ? "no version matches" : "unknown version",
                     in_quotes(word), hint.empty() ? all : hint);
}

void read_identity(Draft& draft, const Section& root) {
  for (const Key& key : keys())
    if (key.needed && root.find(key.name) == nullptr)
      draft.errors.add(
          root.place,
          fmt::format("'{}' is missing; a spec needs name, versions and axes", key.name));
  draft.yaml.read(root, "name", draft.spec.name);
  draft.yaml.read(root, "title", draft.spec.title);
  const bool well_formed = !draft.spec.name.empty() &&
                           draft.spec.name.find_first_not_of(
                               "abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
  if (const Entry* name = root.find("name");
      name != nullptr && name->value.IsScalar() && !well_formed)
    draft.errors.add(name->place,
                     fmt::format("name {} must be of lower-case letters, digits, '_' and '-' "
                                 "(it names the folder of the results)",
                                 in_quotes(draft.spec.name)));
  else if (draft.spec.name.size() > kLongestName)
    draft.errors.add(
        root.find("name")->place,
        fmt::format("name {} has {} characters; at most {} (it names the folder of the results)",
                    in_quotes(draft.spec.name),
                    with_commas(static_cast<std::int64_t>(draft.spec.name.size())), kLongestName));
  if (draft.spec.title.size() > kLongestTitle)
    draft.errors.add(root.find("title")->place,
                     fmt::format("title {} has {} bytes; at most {}", in_quotes(draft.spec.title),
                                 with_commas(static_cast<std::int64_t>(draft.spec.title.size())),
                                 kLongestTitle));
}

void read_versions(Draft& draft, const Section& root) { VersionsReader(draft).read(root); }

}  // namespace lloyd
