#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "experiments/process/program_files.h"
#include "experiments/spec/spec.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_directory(path, ignored);
}

/// Suggests the spec with the closest stem. Folders and endings are easily left out, and the part
/// of the name that is the same for all would make any two of them close.
std::string suggested_spec(const std::string& name, const std::vector<std::string>& specs) {
  std::vector<std::string> stems;
  for (const std::string& spec : specs) stems.push_back(fs::path(spec).stem().string());
  const std::optional<std::size_t> at = closest(fs::path(name).stem().string(), stems);
  return at ? did_you_mean(specs[*at]) : "";
}

}  // namespace

std::vector<std::string> specs_in(const fs::path& folder, const fs::path& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.extension() == ".yaml" && !path.filename().string().starts_with('.'))
      names.push_back(path.lexically_relative(root).generic_string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_spec(const std::string& name, const std::string& otherwise) {
  const fs::path root = home_directory() / "experiments";

  if (is_file(name)) return name;
  std::vector<std::string> looked{fs::absolute(name).string()};
  if (fs::path(name).is_relative()) {
    if (is_file(root / name)) return root / name;
    looked.push_back((root / name).string());
  }

  std::vector<std::string> specs = specs_in(fs::absolute(name).parent_path(), fs::current_path());
  for (std::string& spec : specs_in(root / "sweeps", root))
    if (!contains(specs, spec)) specs.push_back(std::move(spec));

  std::error_code ignored;
  const char* problem =
      fs::is_directory(name, ignored) ? "is a folder, not a spec" : "no such spec";
  std::string hint = suggested_spec(name, specs);
  if (hint.empty()) hint = otherwise;
  std::vector<std::string> lines{fmt::format("{}: {}{}", name, problem, hint),
                                 "  looked for " + join(looked)};
  if (!fs::is_directory(root, ignored))
    lines.push_back(fmt::format(
        "  there is no {}, where the program expects its specs and Python versions; name the tree "
        "that has them in LLOYDBENCH_HOME",
        root.string()));
  if (hint.empty())
    lines.push_back("  there are " + (specs.empty() ? "no specs in these places" : join(specs)));
  throw SpecError(std::move(lines));
}

}  // namespace lloyd
