// A generator's options, checked and with its defaults filled in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/sources/dataset.h"

namespace lloyd::data {

struct GeneratorOptions {
  double low = 0, high = 0;
  int centers = 0;
  double sigma = 0;
};

/// Throws DataError for an unknown generator, an option that it does not have, or an invalid value.
GeneratorOptions generator_options(const Source& source);

/// All options that determine the values, in a fixed order, such as "uniform(range=[0,1),
/// seed=42)". Throws like generator_options().
std::string generator_text(const Source& source);

/// The generator of the source's points; null for a file. Throws like generator_options().
std::shared_ptr<const Generator> make_generator(const Source& source);

}  // namespace lloyd::data
