#include "experiments/spec/keys.h"

#include <stdexcept>

#include "data/sources/dataset.h"
#include "experiments/spec/spec.h"
#include "profiling/presets.h"

namespace lloyd {
namespace {

using Json = nlohmann::ordered_json;  // examples show keys in their order
using Kind = Key::Kind;

std::vector<std::string> generator_names() {
  std::vector<std::string> names;
  for (const data::GeneratorInfo& info : data::generators()) names.push_back(info.name);
  return names;
}

const std::vector<std::string> kFigures = {
#include "analysis/figures.inc"
};

std::vector<Key> spec_keys() {
  return {
      {.name = "name",
       .kind = Kind::text,
       .text = "Names the folder of the results: lower-case letters, digits, '_' and '-', at most "
               "64 of them.",
       .example = "k1000",
       .needed = true,
       .pattern = "[a-z0-9_-]{1,64}"},
      {.name = "title",
       .kind = Kind::text,
       .text = "The title of figures and tables, at most 200 bytes.",
       .example = "Speedup with K = 1000"},
      {.name = "versions",
       .kind = Kind::words,
       .text = "The versions to run: names, or globs with * and ?. A glob that begins with * needs "
               "quotes. `run_experiment --list-versions` lists them all.",
       .example = {"cpu_sequential", "luigi_*"},
       .needed = true},
      {.name = "baseline",
       .kind = Kind::text,
       .text = "The version that speedups are relative to: one of `versions`, or `best:cpu`, the "
               "fastest verified version of each problem that ran on the CPU in the same run.",
       .example = "cpu_sequential"},
      {.name = "axes",
       .kind = Kind::axes,
       .text = "The values of each axis. The points are their cross product; an axis multiplies "
               "only the versions that use it.",
       .example = {{"n", {10000, 1000000}}, {"k", 100}},
       .needed = true},
      {.name = "zip",
       .kind = Kind::zip,
       .text = "Axes that advance together instead of multiplying. They need the same number of "
               "values.",
       .example = Json::array({Json::array({"n", "k"})})},
      {.name = "exclude",
       .kind = Kind::exclude,
       .text = "Points that are not generated: those that match all keys of an entry. The keys are "
               "`version` (a glob) and the axes (a value, a list, or a comparison).",
       .example = Json::array({{{"version", "cpu_*"}, {"n", "> 1e6"}}})},
      {.name = "data",
       .kind = Kind::section,
       .text = "Where the points come from: a generator or a file.",
       .example = {{"generator", "blobs"}, {"centers", 100}}},
      {.name = "solve",
       .kind = Kind::section,
       .text = "How the centroids begin, and when a solve ends.",
       .example = {{"iterations", 50}}},
      {.name = "measure",
       .kind = Kind::section,
       .text = "How often and how exactly each point is measured.",
       .example = {{"launches", 5}}},
      {.name = "profile",
       .kind = Kind::section,
       .text = "What is recorded beside the times, in passes of their own.",
       .example = {{"counters", "roofline"}}},
      {.name = "figures",
       .kind = Kind::words,
       .text = "The figures that `make run` draws for this spec.",
       .example = {"speedup", "roofline"},
       .noun = "figure",
       .words = kFigures},
  };
}

std::vector<Key> data_keys() {
  return {
      {.section = "data",
       .name = "generator",
       .kind = Kind::choice,
       .text = "The distribution of the points. The bits are the same on every machine and for any "
               "number of threads.",
       .example = "blobs",
       .noun = "generator",
       .words = generator_names(),
       .with = "generator"},
      {.section = "data",
       .name = "seed",
       .kind = Kind::seed,
       .text = "The seed of the generator.",
       .example = 7,
       .with = "generator"},
      {.section = "data",
       .name = "range",
       .kind = Kind::range,
       .text = "The lowest and the highest coordinate, the latter exclusive.",
       .example = {-1, 1},
       .with = "generator"},
      {.section = "data",
       .name = "centers",
       .kind = Kind::whole,
       .text = "The number of points that the others lie around.",
       .example = 100,
       .low = 1,
       .with = "generator"},
      {.section = "data",
       .name = "sigma",
       .kind = Kind::real,
       .text = "The standard deviation of the noise around them.",
       .example = 0.5,
       .sign = Sign::not_negative,
       .with = "generator"},
      {.section = "data",
       .name = "file",
       .kind = Kind::text,
       .text =
           "A file with one point per row. A relative path is looked up from the spec's folder, "
           "then from the current directory.",
       .example = "points.csv",
       .with = "file"},
      {.section = "data",
       .name = "format",
       .kind = Kind::choice,
       .text = "The file's format, where its name and its first line do not tell.",
       .example = "space",
       .noun = "format",
       .words = data::formats(),
       .with = "file"},
      {.section = "data",
       .name = "header",
       .kind = Kind::flag,
       .text =
           "Text files: whether the first line holds the names of the columns. Without this key "
           "it does if all its fields are names.",
       .example = true,
       .with = "file"},
      {.section = "data",
       .name = "delimiter",
       .kind = Kind::choice,
       .text = "csv: the character between columns. Without this key it is a comma, or a semicolon "
               "if the comma is the decimal mark.",
       .example = ";",
       .words = {",", ";", "|", ":", "tab"},
       .with = "file"},
      {.section = "data",
       .name = "decimal",
       .kind = Kind::choice,
       .text = "Text files: the decimal mark of all numbers; a point unless given.",
       .example = ",",
       .words = {".", ","},
       .with = "file"},
      {.section = "data",
       .name = "index_column",
       .kind = Kind::column,
       .text = "Text files: a column to leave out, by its name or its number, from 0.",
       .example = "id",
       .with = "file"},
      {.section = "data",
       .name = "label_column",
       .kind = Kind::column,
       .text = "Text files: another column to leave out; a negative number counts from the end.",
       .example = -1,
       .low = std::numeric_limits<int>::min(),
       .with = "file"},
      {.section = "data",
       .name = "columns",
       .kind = Kind::columns,
       .text = "Text files: the columns to read, in this order, by name or number.",
       .example = {"height", "weight"},
       .low = std::numeric_limits<int>::min(),
       .with = "file"},
      {.section = "data",
       .name = "array",
       .kind = Kind::text,
       .text = "npz files: the name of the array. A file with a single array needs no name.",
       .example = "points",
       .with = "file"},
  };
}

std::vector<Key> solve_keys() {
  return {
      {.section = "solve",
       .name = "iterations",
       .kind = Kind::whole,
       .text = "The number of iterations; the largest one if one of the next two keys is set.",
       .example = 50,
       .low = 1},
      {.section = "solve",
       .name = "tolerance",
       .kind = Kind::real,
       .text = "Above 0, a solve ends when no centroid moves farther than this.",
       .example = 0.0001,
       .sign = Sign::not_negative},
      {.section = "solve",
       .name = "min_changes",
       .kind = Kind::whole,
       .text = "Above 0, a solve ends when fewer points than this change their cluster.",
       .example = 10,
       .high = std::numeric_limits<std::int64_t>::max()},
      {.section = "solve",
       .name = "init",
       .kind = Kind::choice,
       .text = "How the initial centroids are chosen. They are the same for every version.",
       .example = "kmeans++",
       .noun = "init",
       .words = data::init_methods()},
      {.section = "solve",
       .name = "init_file",
       .kind = Kind::text,
       .text = "With `init: file`, a data file with K rows.",
       .example = "centroids.csv"},
      {.section = "solve",
       .name = "seed",
       .kind = Kind::seed,
       .text = "The seed of the initial centroids.",
       .example = 3},
  };
}

std::vector<Key> measure_keys() {
  return {
      {.section = "measure",
       .name = "launches",
       .kind = Kind::whole,
       .text =
           "The number of processes that time each point. The other keys hold for each of them.",
       .example = 5,
       .low = 1},
      {.section = "measure",
       .name = "warmup",
       .kind = Kind::whole,
       .text = "Solves before the first one that is timed.",
       .example = 3},
      {.section = "measure",
       .name = "repetitions",
       .kind = Kind::whole,
       .text = "The least number of timed solves.",
       .example = 20,
       .low = 1},
      {.section = "measure",
       .name = "max_noise",
       .kind = Kind::real,
       .text = "More solves are timed until the median's 95% interval is at most this wide, "
               "relative to the median and to each side.",
       .example = 0.01,
       .sign = Sign::positive},
      {.section = "measure",
       .name = "max_seconds",
       .kind = Kind::real,
       .text = "No more solves are timed once these seconds are spent on a point.",
       .example = 5,
       .sign = Sign::positive},
      {.section = "measure",
       .name = "l2",
       .kind = Kind::choice,
       .text = "Whether a solve finds the GPU's L2 cache as the one before left it (warm), or "
               "flushed (cold).",
       .example = "cold",
       .noun = "state of l2",
       .words = {"warm", "cold"}},
      {.section = "measure",
       .name = "timeout",
       .kind = Kind::real,
       .text = "After so many seconds the point is recorded as `timeout`, and the sweep goes on.",
       .example = 60,
       .sign = Sign::positive},
      {.section = "measure",
       .name = "verify",
       .kind = Kind::flag,
       .text = "Whether every answer is compared with the float64 reference.",
       .example = false},
      {.section = "measure",
       .name = "throttled",
       .kind = Kind::choice,
       .text =
           "Whether a sample that was taken while the GPU held its clock back is kept, or taken "
           "again up to three times.",
       .example = "retry",
       .noun = "way with throttled samples",
       .words = {"keep", "retry"}},
  };
}

std::vector<Key> profile_keys() {
  return {
      {.section = "profile",
       .name = "nvtx",
       .kind = Kind::flag,
       .text = "Whether the phases are marked by NVTX ranges, which Nsight shows.",
       .example = false},
      {.section = "profile",
       .name = "counters",
       .kind = Kind::words,
       .text = "GPU counters per phase and kernel: presets, or CUPTI's own names "
               "(`run_experiment --list-metrics`).",
       .example = {"roofline", "dram__bytes.sum"},
       .noun = "counter",
       .words = profiling::presets(),
       // CUPTI documentation, Metrics Naming Conventions: unit__counter, roll-up, sub-metric.
       .pattern = "[a-z0-9_]+__[a-z0-9_]+(\\.[a-z0-9_]+)*"},
      {.section = "profile",
       .name = "timeline",
       .kind = Kind::flag,
       .text = "Whether kernels, copies and API calls are recorded into timeline.json.",
       .example = true},
      {.section = "profile",
       .name = "cpu",
       .kind = Kind::words,
       .text = "Counters of the CPU per phase.",
       .example = {"llc_misses", "instructions"},
       .noun = "CPU counter",
       .words = {"l1d_misses", "llc_misses", "instructions", "cycles", "cachegrind"}},
  };
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> joined;
    for (const auto& part :
         {spec_keys(), data_keys(), solve_keys(), measure_keys(), profile_keys()})
      joined.insert(joined.end(), part.begin(), part.end());
    return joined;
  }();
  return all;
}

std::vector<std::string> key_names(const std::string& section) {
  std::vector<std::string> names;
  for (const Key& key : keys())
    if (key.section == section) names.push_back(key.name);
  return names;
}

const Key& key_of(const std::string& section, const std::string& name) {
  for (const Key& key : keys())
    if (key.section == section && key.name == name) return key;
  throw std::logic_error("no key " + section + "." + name + " in the table (keys.cpp)");
}

nlohmann::json default_of(const Key& key) {
  static const nlohmann::json defaults = Spec{}.resolved();
  const nlohmann::json& of_section = key.section.empty() ? defaults : defaults.at(key.section);
  return of_section.value(key.name, nlohmann::json(nullptr));
}

}  // namespace lloyd
