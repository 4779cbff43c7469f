#include <cstdint>
#include <limits>

#include "data/sources/dataset.h"
#include "experiments/spec/key_tables.h"

namespace lloyd {
namespace {
using Kind = Key::Kind;
}  // namespace

Key distance_key() {
  return {.section = "solve",
          .name = "distance",
          .kind = Kind::choice,
          .text =
              "With cosine, spherical k-means: every point is scaled to length 1 once, and "
              "every centroid after each update.",
          .example = "cosine",
          .noun = "distance",
          .words = {"euclidean", "cosine"}};
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
      distance_key(),
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
      {.section = "solve",
       .name = "restarts",
       .kind = Kind::whole,
       .text = "How often each point is solved, each time from other initial centroids: those of "
               "its seed, of the next one, and so on.",
       .example = 10,
       .low = 1,
       .high = 10'000},
  };
}

}  // namespace lloyd
