#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "data/sources/dataset.h"
#include "data/sources/generators.h"
#include "data/sources/parallel.h"
#include "kernels/core/random_values.h"

namespace lloyd::data {
namespace {

const GeneratorInfo& generator_info(const std::string& name) {
  for (const GeneratorInfo& info : generators()) {
    if (info.name == name) return info;
  }
  std::vector<std::string> names;
  for (const GeneratorInfo& info : generators()) names.push_back(info.name);
  throw DataError(
      fmt::format("unknown generator '{}'; the generators are {}", name, fmt::join(names, ", ")));
}

void check_key(const GeneratorInfo& info, const char* key, bool given) {
  if (!given || std::find(info.keys.begin(), info.keys.end(), key) != info.keys.end()) return;
  throw DataError(fmt::format("generator '{}' has no key '{}'; its keys are seed{}{}", info.name,
                              key, info.keys.empty() ? "" : ", ", fmt::join(info.keys, ", ")));
}

/// The smallest float that is not below `low`.
float least_float(double low) {
  const auto nearest = static_cast<float>(low);
  return nearest < low ? std::nextafter(nearest, std::numeric_limits<float>::max()) : nearest;
}

/// The largest float below `high`.
float greatest_float(double high) {
  const auto nearest = static_cast<float>(high);
  return nearest < high ? nearest : std::nextafter(nearest, std::numeric_limits<float>::lowest());
}

template <class Values>
void fill(float* out, std::int64_t first, std::int64_t n, int dim, int threads,
          const Values& values) {
  static constexpr std::int64_t kChunkValues =
      1 << 16;  // 256 KiB: small compared with the work, large compared with a page
  parallel_rows(n, std::max<std::int64_t>(1, kChunkValues / dim), threads,
                [&](std::int64_t begin, std::int64_t end, std::int64_t) {
                  for (std::int64_t row = begin; row < end; ++row) {
                    for (int j = 0; j < dim; j += 4) {
                      float block[4];
                      values(first + row, j / 4, block);
                      std::copy_n(block, std::min(4, dim - j), out + row * dim + j);
                    }
                  }
                });
}

using Values = decltype(Generator::values);

Values values_of(const std::string& name, std::uint64_t seed, const GeneratorOptions& options) {
  const auto [low, high, all_centers, sigma] = options;
  const auto centers = static_cast<std::uint32_t>(all_centers);
  const double log_centers = natural_log(centers + 1.0);
  if (name == "uniform")
    return UniformValues{seed, low, high, least_float(low), greatest_float(high)};
  if (name == "uva_int") return IntegerValues{seed, -100, 201};
  if (name == "normal") return NormalValues{seed};
  if (name == "embeddings") return EmbeddingValues{seed, centers, log_centers, sigma};
  if (name == "sift") return SiftValues{seed, centers, log_centers};
  if (name == "gps") return GpsValues{seed, low, high, centers, log_centers, sigma};
  if (name == "rgb") return RgbValues{seed, centers, log_centers, sigma};
  if (name == "anisotropic") return AnisotropicValues{seed, low, high, centers, sigma};
  if (name == "skewed") return SkewedValues{seed, low, high, centers, sigma};
  return BlobValues{seed, low, high, centers, sigma};  // blobs, stamp_gauss
}

}  // namespace

void draw_on_cpu(const Generator& generator, std::int64_t first, std::span<float> out, int dim,
                 int threads) {
  const std::int64_t n = static_cast<std::int64_t>(out.size()) / dim;
  std::visit([&](const auto& values) { fill(out.data(), first, n, dim, threads, values); },
             generator.values);
}

std::string GeneratorInfo::describe() const {
  std::vector<std::string> defaults;
  for (const std::string& key : keys)
    defaults.push_back(key == "range"     ? fmt::format("range: [{}, {}]", low, high)
                       : key == "centers" ? fmt::format("centers: {}", centers)
                                          : fmt::format("sigma: {}", sigma));
  if (defaults.empty()) return summary;
  return fmt::format("{} (defaults: {})", summary, fmt::join(defaults, ", "));
}

const std::vector<GeneratorInfo>& generators() {
  static const std::vector<GeneratorInfo> all = {
      {.name = "uniform", .summary = "independent, uniform in range", .keys = {"range"}},
      {.name = "blobs",
       .summary =
           "normal noise of standard deviation sigma around one of several points (centers of "
           "them) that are uniform in range",
       .keys = {"range", "centers", "sigma"},
       .low = -10,
       .high = 10},
      {.name = "uva_int",
       .summary = "integers, uniform in [-100, 100], as in the University of Valladolid's inputs"},
      {.name = "stamp_gauss",
       .summary = "STAMP's rule: normal noise of standard deviation (1 / centers)^3 around one of "
                  "several points (centers of them) that are uniform in [0, 1)",
       .keys = {"centers"}},
      {.name = "normal", .summary = "independent, standard normal"},
      {.name = "embeddings",
       .summary = "like embeddings of text or images: normal clusters (centers of them) around a "
                  "common mean, sizes by Zipf's law, noise with heavy tails (a slash distribution "
                  "of scale sigma)",
       .keys = {"centers", "sigma"},
       .centers = 1000},
      {.name = "sift",
       .summary = "like SIFT descriptors: integers from 0 to 255, many of them 0 and few large, in "
                  "clusters (centers of them) with sizes by Zipf's law; use dim: 128",
       .keys = {"centers"},
       .centers = 1000},
      {.name = "gps",
       .summary =
           "like reported positions in km: along straight streets of towns (centers of them) "
           "that are uniform in range, with sizes by Zipf's law, and along roads between towns; "
           "errors with heavy tails (scale sigma); use dim: 2",
       .keys = {"range", "centers", "sigma"},
       .high = 500,
       .centers = 1000,
       .sigma = 0.005},
      {.name = "rgb",
       .summary = "like the colours of a photograph's pixels: integers from 0 to 255, in "
                  "regions (centers of them) with sizes by Zipf's law, each along a line through "
                  "black, with noise of "
                  "standard deviation sigma; use dim: 3",
       .keys = {"centers", "sigma"},
       .centers = 64,
       .sigma = 4},
      {.name = "anisotropic",
       .summary = "a Gaussian mixture as blobs, but each cluster is long in a random direction of "
                  "its own and thin in the others",
       .keys = {"range", "centers", "sigma"},
       .low = -10,
       .high = 10},
      {.name = "skewed",
       .summary = "a Gaussian mixture as blobs, but half of the points are in one cluster, and the "
                  "other clusters (centers in all) share the rest",
       .keys = {"range", "centers", "sigma"},
       .low = -10,
       .high = 10,
       .centers = 10'001},
  };
  return all;
}

GeneratorOptions generator_options(const Source& source) {
  const GeneratorInfo& info = generator_info(source.generator);
  check_key(info, "range", source.low.has_value() || source.high.has_value());
  check_key(info, "centers", source.centers.has_value());
  check_key(info, "sigma", source.sigma.has_value());

  GeneratorOptions options;
  options.low = source.low.value_or(info.low);
  options.high = source.high.value_or(info.high);
  options.centers = source.centers.value_or(info.centers);
  options.sigma = source.sigma.value_or(info.sigma);
  if (info.name == "stamp_gauss") {
    const double inverse = 1.0 / options.centers;
    options.sigma = inverse * inverse * inverse;
  }

  // Noise is added to values in the range, and the sum must remain a finite float.
  if (!(std::fabs(options.low) <= 1e38 && std::fabs(options.high) <= 1e38)) {
    throw DataError(fmt::format("range must lie between -1e38 and 1e38, not go from {} to {}",
                                options.low, options.high));
  }
  if (!(options.low < options.high && least_float(options.low) <= greatest_float(options.high))) {
    throw DataError(
        fmt::format("range must go from low to high with a float between them, not from {} to {}",
                    options.low, options.high));
  }
  if (options.centers < 1) {
    throw DataError(fmt::format("centers must be at least 1, not {}", options.centers));
  }
  if (!(options.sigma >= 0 && options.sigma <= 1e30)) {
    throw DataError(fmt::format("sigma must be from 0 to 1e30, not {}", options.sigma));
  }
  return options;
}

std::string generator_text(const Source& source) {
  const GeneratorOptions options = generator_options(source);
  std::string text = source.generator + "(";
  for (const std::string& key : generator_info(source.generator).keys) {
    if (key == "range") text += fmt::format("range=[{},{}), ", options.low, options.high);
    if (key == "centers") text += fmt::format("centers={}, ", options.centers);
    if (key == "sigma") text += fmt::format("sigma={}, ", options.sigma);
  }
  return text + fmt::format("seed={})", source.seed);
}

std::shared_ptr<const Generator> make_generator(const Source& source) {
  if (source.generator.empty()) return nullptr;
  const GeneratorOptions options = generator_options(source);
  Generator generator{values_of(source.generator, source.seed, options), nullptr};
  generator.draw = [values = generator.values](std::span<float> points, int dim) {
    draw_on_cpu({values, nullptr}, 0, points, dim, 0);
  };
  return std::make_shared<const Generator>(generator);
}

Dataset generate(const Source& source, std::int64_t n, int dim, int threads, DrawRows& draw) {
  Dataset data(n, dim);
  generate_rows(source, 0, data.values(), dim, threads, draw);
  return data;
}

void generate_rows(const Source& source, std::int64_t first, std::span<float> out, int dim,
                   int threads, DrawRows& draw) {
  generator_info(source.generator);  // throws for a file and lists the generators
  draw(*make_generator(source), first, out, dim, threads);
}

}  // namespace lloyd::data
