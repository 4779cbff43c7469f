// The values 4·block … 4·block + 3 of a row by each generator. random_numbers.h says why their bits
// are the same everywhere, and how files that include it must be compiled.
#pragma once

#include <functional>
#include <span>
#include <variant>

#include "kernels/core/imitated_values.h"
#include "kernels/core/random_numbers.h"

namespace lloyd::data {

struct UniformValues {
  std::uint64_t seed;
  double low, high;
  float least, greatest;  // the smallest and the largest float in [low, high)

  LLOYD_HOST_DEVICE void operator()(std::uint64_t row, std::uint32_t block, float (&out)[4]) const {
    const Words words = random_words(seed, Stream::points, row, block);
    for (int i = 0; i < 4; ++i) {
      const float value = to_float(between(low, high, words.word[i]));
      out[i] = value < least ? least : value > greatest ? greatest : value;
    }
  }
};

struct NormalValues {
  std::uint64_t seed;

  LLOYD_HOST_DEVICE void operator()(std::uint64_t row, std::uint32_t block, float (&out)[4]) const {
    const Words words = random_words(seed, Stream::points, row, block);
    for (int i = 0; i < 4; ++i) out[i] = to_float(normal_quantile(open_unit32(words.word[i])));
  }
};

/// Normal noise of standard deviation `sigma` around one of `centers` centres. The centres'
/// coordinates are uniform in [low, high), and each row chooses its own centre uniformly.
struct BlobValues {
  std::uint64_t seed;
  double low, high;
  std::uint32_t centers;
  double sigma;

  LLOYD_HOST_DEVICE void operator()(std::uint64_t row, std::uint32_t block, float (&out)[4]) const {
    const std::uint32_t chosen = below(random_words(seed, Stream::choice, row, 0).word[0], centers);
    const Words center = random_words(seed, Stream::centers, chosen, block);
    const Words noise = random_words(seed, Stream::points, row, block);
    for (int i = 0; i < 4; ++i) {
      const double normal = normal_quantile(open_unit32(noise.word[i]));
      out[i] = to_float(add(between(low, high, center.word[i]), multiply(sigma, normal)));
    }
  }
};

/// Integers, uniform in [low, low + count − 1].
struct IntegerValues {
  std::uint64_t seed;
  int low;
  std::uint32_t count;

  LLOYD_HOST_DEVICE void operator()(std::uint64_t row, std::uint32_t block, float (&out)[4]) const {
    const Words words = random_words(seed, Stream::points, row, block);
    for (int i = 0; i < 4; ++i) {
      out[i] = static_cast<float>(low + static_cast<int>(below(words.word[i], count)));
    }
  }
};

/// A generator with its options. values(row, block, out) sets out[i] to value (row, 4·block + i) of
/// the points.
struct Generator {
  std::variant<UniformValues, NormalValues, BlobValues, IntegerValues, EmbeddingValues, SiftValues,
               GpsValues, RgbValues, AnisotropicValues, SkewedValues>
      values;
  /// Fills `points` (n × dim, row-major) on all cores of the host.
  std::function<void(std::span<float> points, int dim)> draw;
};

}  // namespace lloyd::data
