// Generators that imitate data that people cluster. Each says what it imitates and what it leaves
// out. The test beside them (tests/data/imitated_test.cpp) checks shares and moments.
#pragma once

#include "kernels/core/random_numbers.h"

namespace lloyd::data {

/// Embeddings of text or images: clusters whose sizes follow Zipf's law; a mean that all points
/// share, so that any two of them have a positive cosine (Ethayarajh 2019); and lengths with heavy
/// tails. Noise and length are those of a slash distribution: a normal vector divided by u^(1/4),
/// with u uniform in (0, 1). Its variance is 2 sigma². Real embeddings also have a few dimensions
/// with a far larger variance.
struct EmbeddingValues {
  std::uint64_t seed;
  std::uint32_t centers;
  double log_centers;  // ln(centers + 1)
  double sigma;

  LLOYD_HOST_DEVICE void operator()(std::uint64_t row, std::uint32_t block, float (&out)[4]) const {
    const Words own = random_words(seed, Stream::choice, row, 0);
    const std::uint32_t chosen = zipf(own.word[0], centers, log_centers);
    const double scale = divide(sigma, square_root(square_root(open_unit32(own.word[1]))));
    const Words shared = random_words(seed, Stream::shape, 0, block);
    const Words center = random_words(seed, Stream::centers, chosen, block);
    const Words noise = random_words(seed, Stream::points, row, block);
    for (int i = 0; i < 4; ++i) {
      const double place = add(normal_quantile(open_unit32(shared.word[i])),
                               normal_quantile(open_unit32(center.word[i])));
      const double normal = normal_quantile(open_unit32(noise.word[i]));
      out[i] = to_float(add(place, multiply(scale, normal)));
    }
  }
};

/// An integer from 0 to 255: `value` rounded down, and the nearest end where it is outside.
LLOYD_HOST_DEVICE static inline float byte_value(double value) {
  return value < 0 ? 0.0f : value >= 255 ? 255.0f : to_float(std::floor(value));
}

/// SIFT descriptors: histograms of gradients, as integers from 0 to 255. Many bins are empty and
/// few are large. Each cluster (a visual word; their sizes follow Zipf's law) has a histogram with
/// exponential bins. Points add normal noise, and a threshold empties small bins. Real descriptors
/// are also scaled to a common length, and neighbouring bins depend on each other.
struct SiftValues {
  std::uint64_t seed;
  std::uint32_t centers;
  double log_centers;

  LLOYD_HOST_DEVICE void operator()(std::uint64_t row, std::uint32_t block, float (&out)[4]) const {
    const Words own = random_words(seed, Stream::choice, row, 0);
    const std::uint32_t chosen = zipf(own.word[0], centers, log_centers);
    const Words center = random_words(seed, Stream::centers, chosen, block);
    const Words noise = random_words(seed, Stream::points, row, block);
    for (int i = 0; i < 4; ++i) {
      const double bin = -natural_log(open_unit32(center.word[i]));
      const double normal = normal_quantile(open_unit32(noise.word[i]));
      out[i] = byte_value(add(multiply(40.0, add(bin, multiply(0.4, normal))), -10.0));
    }
  }
};

/// Positions that vehicles report. Towns lie at points that are uniform in [low, high), and their
/// sizes follow Zipf's law. Nine of ten positions are uniform along one of 18 straight streets of
/// their town, the others along one of two straight roads to another town. The receiver's error is
/// normal noise divided by √u, with u uniform in (0, 1): most are within a few sigma, some are far
/// off. Real tracks are correlated in time and follow curves.
struct GpsValues {
  std::uint64_t seed;
  double low, high;
  std::uint32_t centers;
  double log_centers;
  double sigma;

  static constexpr std::uint32_t kRoads = 2, kWays = 20;  // of a town; the other ways are streets

  LLOYD_HOST_DEVICE void operator()(std::uint64_t row, std::uint32_t block, float (&out)[4]) const {
    const Words own = random_words(seed, Stream::choice, row, 0);
    const std::uint32_t town = zipf(own.word[0], centers, log_centers);
    const std::uint32_t way = below(own.word[1], kWays);
    const double along = unit24(own.word[2]);
    const double error = divide(sigma, square_root(open_unit32(own.word[3])));
    const std::uint64_t ways = (std::uint64_t{town} * kWays + way) * 2;
    const Words center = random_words(seed, Stream::centers, town, block);
    const Words noise = random_words(seed, Stream::points, row, block);
    Words first, second;
    if (way < kRoads) {
      const std::uint32_t other =
          below(random_words(seed, Stream::shape, ways, 0).word[0], centers);
      first = second = random_words(seed, Stream::centers, other, block);
    } else {
      first = random_words(seed, Stream::shape, ways, block);
      second = random_words(seed, Stream::shape, ways + 1, block);
    }
    const double radius = multiply(add(high, -low), 0.005);
    for (int i = 0; i < 4; ++i) {
      const double here = between(low, high, center.word[i]);
      double offset;
      if (way < kRoads) {
        offset = multiply(along, add(between(low, high, first.word[i]), -here));
      } else {
        const double middle = normal_quantile(open_unit32(first.word[i]));
        const double direction = normal_quantile(open_unit32(second.word[i]));
        const double place = add(add(along, along), -1.0);
        offset = multiply(radius, add(middle, multiply(place, direction)));
      }
      const double normal = normal_quantile(open_unit32(noise.word[i]));
      out[i] = to_float(add(add(here, offset), multiply(error, normal)));
    }
  }
};

/// The colours of a photograph's pixels: integers from 0 to 255. The picture has regions, whose
/// sizes follow Zipf's law. A region has a brightness, which is uniform, and a tint. Light and
/// shade multiply all channels of a pixel, so a region's pixels lie along a line through black; the
/// sensor adds noise of standard deviation sigma. Overexposed pixels are 255. In real pictures,
/// neighbouring pixels have similar colours.
struct RgbValues {
  std::uint64_t seed;
  std::uint32_t centers;
  double log_centers;
  double sigma;

  LLOYD_HOST_DEVICE void operator()(std::uint64_t row, std::uint32_t block, float (&out)[4]) const {
    const Words own = random_words(seed, Stream::choice, row, 0);
    const std::uint32_t region = zipf(own.word[0], centers, log_centers);
    const double light = add(1.0, multiply(0.25, normal_quantile(open_unit32(own.word[1]))));
    const Words brightness = random_words(seed, Stream::shape, region, 0);
    const double grey = multiply(256.0, unit24(brightness.word[0]));
    const Words tint = random_words(seed, Stream::centers, region, block);
    const Words noise = random_words(seed, Stream::points, row, block);
    for (int i = 0; i < 4; ++i) {
      const double colour = add(grey, multiply(32.0, normal_quantile(open_unit32(tint.word[i]))));
      const double normal = normal_quantile(open_unit32(noise.word[i]));
      out[i] = byte_value(add(multiply(light, colour), multiply(sigma, normal)));
    }
  }
};

/// A Gaussian mixture whose clusters are long and thin, each in a direction of its own. The noise
/// is sigma (a d + b / 4): a is standard normal, d a standard normal vector of the cluster, and b
/// one of the point. The centres are those of blobs.
struct AnisotropicValues {
  std::uint64_t seed;
  double low, high;
  std::uint32_t centers;
  double sigma;

  LLOYD_HOST_DEVICE void operator()(std::uint64_t row, std::uint32_t block, float (&out)[4]) const {
    const Words own = random_words(seed, Stream::choice, row, 0);
    const std::uint32_t chosen = below(own.word[0], centers);
    const double along = normal_quantile(open_unit32(own.word[1]));
    const Words center = random_words(seed, Stream::centers, chosen, block);
    const Words direction = random_words(seed, Stream::shape, chosen, block);
    const Words noise = random_words(seed, Stream::points, row, block);
    for (int i = 0; i < 4; ++i) {
      const double far = multiply(along, normal_quantile(open_unit32(direction.word[i])));
      const double near = multiply(0.25, normal_quantile(open_unit32(noise.word[i])));
      out[i] = to_float(add(between(low, high, center.word[i]), multiply(sigma, add(far, near))));
    }
  }
};

/// A Gaussian mixture of very different sizes: the first cluster has half of the points, and the
/// others share the rest. Centres and noise are those of blobs.
struct SkewedValues {
  std::uint64_t seed;
  double low, high;
  std::uint32_t centers;
  double sigma;

  LLOYD_HOST_DEVICE void operator()(std::uint64_t row, std::uint32_t block, float (&out)[4]) const {
    const Words own = random_words(seed, Stream::choice, row, 0);
    const bool large = centers == 1 || own.word[0] < 0x80000000u;
    const std::uint32_t chosen = large ? 0 : 1 + below(own.word[1], centers - 1);
    const Words center = random_words(seed, Stream::centers, chosen, block);
    const Words noise = random_words(seed, Stream::points, row, block);
    for (int i = 0; i < 4; ++i) {
      const double normal = normal_quantile(open_unit32(noise.word[i]));
      out[i] = to_float(add(between(low, high, center.word[i]), multiply(sigma, normal)));
    }
  }
};

}  // namespace lloyd::data
