#include "experiments/spec/key_tables.h"

namespace lloyd {
namespace {

using Json = nlohmann::ordered_json;  // examples show keys in their order
using Kind = Key::Kind;

const std::vector<std::string> kFigures = {
#define LLOYD_FIGURE(name, x) #name,
#include "experiments/spec/figures.inc"
};

}  // namespace

const std::map<std::string, std::string>& figures_with_x() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> x_of = {
#define LLOYD_FIGURE(name, x) {#name, x},
#include "experiments/spec/figures.inc"
    };
    std::erase_if(x_of, [](const auto& figure) { return figure.second.empty(); });
    return x_of;
  }();
  return all;
}

std::vector<Key> spec_keys() {
  Key distance = distance_key();
  distance.section.clear();
  distance.text = "The same as `solve: {distance: …}`.";
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
               "values, or a single one, which goes with all values of the others.",
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
      distance,
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
       .kind = Kind::figures,
       .text = "The figures that `make run` draws for this spec. `{speedup: {x: k}}` draws speedup "
               "with K on x.",
       .example = {"speedup", "roofline"},
       .noun = "figure",
       .words = kFigures},
  };
}

}  // namespace lloyd
