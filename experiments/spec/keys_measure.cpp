#include "experiments/spec/key_tables.h"

namespace lloyd {
namespace {
using Kind = Key::Kind;
}  // namespace

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
       .text = "Solves before the first one that is timed. The first solve is verified and not "
               "timed, so 0 is the same as 1. With one warm-up and one repetition, a solve on the "
               "CPU that takes more than a minute is both.",
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
       .text = "After the repetitions, no more solves are timed once these seconds are spent on a "
               "point. Below 20, energy is not measured.",
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
       .kind = Kind::verify,
       .text =
           "Whether every answer is compared with the float64 reference. `{sample: N}` compares "
           "the labels of N points only, and all centroids; then there is no `inertia`.",
       .example = {{"sample", 20'000}}},
      {.section = "measure",
       .name = "throttled",
       .kind = Kind::choice,
       .text =
           "Whether a sample that was taken while the GPU held its clock back is kept, or taken "
           "again up to three times.",
       .example = "retry",
       .noun = "way with throttled samples",
       .words = {"keep", "retry"}},
      {.section = "measure",
       .name = "warm_seconds",
       .kind = Kind::real,
       .text =
           "The version repeats the solve for one to two times so many seconds right before each "
           "sample, which is then one under sustained load.",
       .example = 1,
       .sign = Sign::not_negative},
      {.section = "measure.verify",
       .name = "sample",
       .kind = Kind::whole,
       .text = "The number of points whose labels are compared with the reference. The seed of the "
               "data decides which, so they are the same for every version; with n or more it is "
               "all of them.",
       .example = 20'000,
       .low = 1},
  };
}

}  // namespace lloyd
