// A generator's options, with its defaults filled in and checked.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/sources/dataset.h"

namespace lloyd::data {

struct GeneratorOptions {
  double low = 0, high = 0;
  int centers = 0;
  double sigma = 0;
};

/// Throws DataError for an unknown generator, an option it does not have, or a value that makes no
/// sense.
GeneratorOptions generator_options(const Source& source);

/// "uniform(range=[0,1), seed=42)": every option that decides the values, in a fixed order. Throws
/// like generator_options().
std::string generator_text(const Source& source);

struct Generator;  // data/sources/random_values.h

/// What draws the source's points; null when it is a file. Throws like generator_options().
std::shared_ptr<const Generator> make_generator(const Source& source);

/// Fills `points` (n × dim, row-major) as generate() does, on `threads` threads (0: all cores).
void draw(const Generator& generator, std::span<float> points, int dim, int threads = 0);

}  // namespace lloyd::data
