// Target: a spec with arbitrary bytes. The reader must throw SpecError or return a plan that can be
// run and written and whose points are distinct.
//
// Lines such as "#--set n=10,20" at the beginning are options of the command line.
#include <memory>
#include <set>
#include <string>

#include "data/sources/generators.h"
#include "experiments/run/availability.h"
#include "experiments/spec/plan.h"
#include "experiments/spec/spec.h"
#include "experiments/text/text.h"
#include "tests/fuzz/fuzz.h"

namespace lloyd::fuzz {
namespace {

// One version of each kind. None of them runs.
const bool kRegistered = [] {
  const VersionFactory none = []() -> std::unique_ptr<Version> { return nullptr; };
  register_version({.name = "cpu_plain", .family = "cpu"}, none);
  register_version({.name = "cpu_threads",
                    .family = "cpu",
                    .parent = "cpu_plain",
                    .axes = {"threads", "processes"},
                    .precisions = {Precision::fp64, Precision::fp32}},
                   none);
  register_version(
      {.name = "fast_tiles",
       .family = "fast",
       .backend = Backend::cuda,
       .parent = "cpu_plain",
       .axes = {"threads_per_block", "samples_per_thread", "gpus"},
       .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16},
       .unsupported = [](const Problem& problem, const Tunables&,
                         const DeviceLimits&) -> std::optional<std::string> {
         return problem.dim > 64 ? std::optional<std::string>("64 dimensions at most")
                                 : std::nullopt;
       }},
      none);
  return register_unavailable({.name = "peer_absent", .family = "peer"}, "not installed");
}();

Overrides take_options(std::string_view text) {
  Overrides overrides;
  while (text.starts_with("#--")) {
    const std::string_view line = text.substr(3, text.find('\n') - 3);
    text.remove_prefix(std::min(text.size(), line.size() + 4));
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, blank);
    const std::string value(line.substr(blank + 1));
    if (name == "set") overrides.set.push_back(value);
    if (name == "only") overrides.only.push_back(value);
    if (name == "filter") overrides.filter = value;
    if (name == "profile") overrides.profile = value;
    if (name == "seed") overrides.seed = value.size();
  }
  return overrides;
}

void check(Spec& spec) {
  decide_availability(spec.points, spec.stop, std::nullopt, "no GPU", spec.data);
  for (const data::NamedSource& each : spec.data) data::fingerprint(each.source);

  require(!spec.points.empty(), "a plan without points");
  std::set<std::string> ids;
  for (const Point& point : spec.points) {
    require(ids.insert(point.id).second, "two points of one name", point.id);
    require(find_version(point.version) != nullptr, "a version that nobody knows", point.version);
    require(point.dim >= 1 && point.k >= 1 && point.k <= point.n, "no such problem", point.id);
    std::int64_t bytes = 0;
    require(!__builtin_mul_overflow(point.n, std::int64_t{4} * point.dim, &bytes),
            "points that no memory can hold", point.id);
    require(point.available == point.reason.empty(), "unavailable without a reason", point.id);
    for (const auto& axis : {point.threads_per_block, point.samples_per_thread, point.threads,
                             point.processes, point.gpus})
      require(!axis || *axis >= 1, "an axis below 1", point.id);
  }
  // dump() throws if a text is not UTF-8.
  const nlohmann::json written = to_json(spec.points.back());
  require(nlohmann::json::parse(written.dump()) == written, "a point that is not read back",
          written.dump());
  const nlohmann::json resolved = spec.resolved();
  require(nlohmann::json::parse(resolved.dump(1)) == resolved, "a spec that is not read back",
          json_text(resolved));
}

}  // namespace
}  // namespace lloyd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lloyd;
  using namespace lloyd::fuzz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const std::filesystem::path file = [] {
    write_file(scratch_folder() / "points.csv", "x,y\n0,0\n0,1\n5,5\n5,6\n");
    write_file(scratch_folder() / "centroids.txt", "0 0\n5 5\n");
    return scratch_folder() / "spec.yaml";
  }();
  write_file(file, text);
  try {
    Spec spec = load_spec(file, take_options(text), "spec.yaml");
    require(kRegistered, "no versions");
    check(spec);
  } catch (const SpecError& error) {
    require(!error.errors.empty(), "refused without an error");
    for (const std::string& line : error.errors) require_message(line);
  }
  return 0;
}
