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
void fill(float* out, std::int64_t n, int dim, int threads, const Values& values) {
  static constexpr std::int64_t kChunkValues =
      1 << 16;  // 256 KiB: small compared with the work, large compared with a page
  parallel_rows(n, std::max<std::int64_t>(1, kChunkValues / dim), threads,
                [&](std::int64_t begin, std::int64_t end, std::int64_t) {
                  for (std::int64_t row = begin; row < end; ++row) {
                    for (int j = 0; j < dim; j += 4) {
                      float block[4];
                      values(row, j / 4, block);
                      std::copy_n(block, std::min(4, dim - j), out + row * dim + j);
                    }
                  }
                });
}

template <class Variant>
void draw(const Variant& any_values, std::span<float> points, int dim, int threads) {
  const std::int64_t n = static_cast<std::int64_t>(points.size()) / dim;
  std::visit([&](const auto& values) { fill(points.data(), n, dim, threads, values); }, any_values);
}

}  // namespace

const std::vector<GeneratorInfo>& generators() {
  static const std::vector<GeneratorInfo> all = {
      {"uniform", "independent, uniform in range (default [0, 1))", {"range"}},
      {"blobs",
       "normal noise of standard deviation sigma (default 1) around one of centers (default 16) "
       "points that are "
       "uniform in range (default [-10, 10))",
       {"range", "centers", "sigma"}},
      {"uva_int",
       "integers, uniform in [-100, 100], as in the University of Valladolid's inputs",
       {}},
      {"stamp_gauss",
       "STAMP's rule: centers (default 16) points uniform in [0, 1), normal noise of standard "
       "deviation "
       "(1 / centers)^3",
       {"centers"}},
      {"normal", "independent, standard normal", {}},
  };
  return all;
}

GeneratorOptions generator_options(const Source& source) {
  const GeneratorInfo& info = generator_info(source.generator);
  check_key(info, "range", source.low.has_value() || source.high.has_value());
  check_key(info, "centers", source.centers.has_value());
  check_key(info, "sigma", source.sigma.has_value());

  GeneratorOptions options;
  const bool blobs = info.name == "blobs";
  options.low = source.low.value_or(blobs ? -10 : 0);
  options.high = source.high.value_or(blobs ? 10 : 1);
  options.centers = source.centers.value_or(16);
  options.sigma = source.sigma.value_or(1);
  if (info.name == "stamp_gauss") {
    const double inverse = 1.0 / options.centers;
    options.sigma = inverse * inverse * inverse;
  }

  // Noise is added to values in the range, and the sum must remain a finite float.
  if (!(std::fabs(options.low) <= 1e38 && std::fabs(options.high) <= 1e38)) {
    throw DataError(fmt::format("range [{}, {}): low and high must be from -1e38 to 1e38",
                                options.low, options.high));
  }
  if (!(options.low < options.high && least_float(options.low) <= greatest_float(options.high))) {
    throw DataError(fmt::format("range [{}, {}): low must be below high, with a float between them",
                                options.low, options.high));
  }
  if (options.centers < 1) {
    throw DataError(fmt::format("centers: {} must be at least 1", options.centers));
  }
  if (!(options.sigma >= 0 && options.sigma <= 1e30)) {
    throw DataError(fmt::format("sigma: {} must be from 0 to 1e30", options.sigma));
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
  Generator generator;
  if (source.generator == "uniform") {
    generator.values = UniformValues{source.seed, options.low, options.high,
                                     least_float(options.low), greatest_float(options.high)};
  } else if (source.generator == "uva_int") {
    generator.values = IntegerValues{source.seed, -100, 201};
  } else if (source.generator == "normal") {
    generator.values = NormalValues{source.seed};
  } else {  // blobs, stamp_gauss
    generator.values = BlobValues{source.seed, options.low, options.high,
                                  static_cast<std::uint32_t>(options.centers), options.sigma};
  }
  generator.draw = [values = generator.values](std::span<float> points, int dim) {
    draw(values, points, dim, 0);
  };
  return std::make_shared<const Generator>(generator);
}

Dataset generate(const Source& source, std::int64_t n, int dim, int threads) {
  generator_info(source.generator);  // throws for a file and lists the generators
  const std::shared_ptr<const Generator> generator = make_generator(source);
  Dataset data(n, dim);
  draw(generator->values, data.values(), dim, threads);
  return data;
}

}  // namespace lloyd::data
