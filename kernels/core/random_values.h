// The values 4·block … 4·block + 3 of a row by each generator, in arithmetic that gives the same
// bits on every machine and device.
//
// IEEE 754 fixes + − × ÷ and √ to the bit. It does not fix log, nor whether a compiler fuses a × b
// + c into one rounding. So the logarithm is written out here, device code uses the intrinsics that
// are never fused, and host files that include this header are compiled with -ffp-contract=off. The
// functions are `static`, so that the linker cannot replace them by those of a file that is
// compiled without that option.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <variant>

#include "kernels/core/philox.h"

namespace lloyd::data {

#if defined(__CUDA_ARCH__)
__device__ static inline double add(double a, double b) { return __dadd_rn(a, b); }
__device__ static inline double multiply(double a, double b) { return __dmul_rn(a, b); }
__device__ static inline double divide(double a, double b) { return __ddiv_rn(a, b); }
__device__ static inline double square_root(double a) { return __dsqrt_rn(a); }
__device__ static inline float to_float(double a) { return __double2float_rn(a); }
#else
LLOYD_HOST_DEVICE static inline double add(double a, double b) { return a + b; }
LLOYD_HOST_DEVICE static inline double multiply(double a, double b) { return a * b; }
LLOYD_HOST_DEVICE static inline double divide(double a, double b) { return a / b; }
LLOYD_HOST_DEVICE static inline double square_root(double a) { return std::sqrt(a); }
LLOYD_HOST_DEVICE static inline float to_float(double a) { return static_cast<float>(a); }
#endif

/// c[0] + c[1] x + … + c[degree] x^degree by Horner's rule, each operation rounded on its own.
template <int count>
LLOYD_HOST_DEVICE static inline double polynomial(const double (&c)[count], double x) {
  double value = c[count - 1];
  for (int i = count - 2; i >= 0; --i) value = add(multiply(value, x), c[i]);
  return value;
}

/// ln x for a positive normal x. A test checks that the relative error is below 2^-52 for x in
/// [2^-33, 1/2].
///
/// x = 2^e m with m in [√½, √2), and ln m = 2 artanh s with s = (m − 1) / (m + 1), |s| < 0.1716.
/// Ending the series at s^21 leaves a relative error of s^22 / 23 < 7e-19.
LLOYD_HOST_DEVICE static inline double natural_log(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u;
  double m;
  std::memcpy(&m, &bits, sizeof m);
  if (m > 0x1.6a09e667f3bcdp0) {  // √2
    m = multiply(m, 0.5);
    exponent += 1;
  }
  const double s = divide(add(m, -1.0), add(m, 1.0));
  const double z = multiply(s, s);
  const double series[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                           1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  const double two_s = add(s, s);
  const double correction = multiply(multiply(two_s, z), polynomial(series, z));
  // ln 2 in two parts. The high part has 21 trailing zero bits, so its product with the exponent is
  // exact.
  const double high = multiply(exponent, 0x1.62e42feep-1);
  const double low = multiply(exponent, 0x1.a39ef35793c76p-33);
  return add(high, add(two_s, add(correction, low)));
}

/// The quantile x of a standard normal variable, which is below x with probability p, for p in
/// [2^-33, 1 − 2^-33]. The relative error is about 1e-16 by the formula, plus a few roundings.
/// Wichura, "Algorithm AS 241", Applied Statistics 37 (1988), PPND16. Its third branch is for p <
/// e^-25 < 2^-33, so it is left out.
LLOYD_HOST_DEVICE static inline double normal_quantile(double p) {
  const double central_above[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                  1.9715909503065514427e3, 1.3731693765509461125e4,
                                  4.5921953931549871457e4, 6.7265770927008700853e4,
                                  3.3430575583588128105e4, 2.5090809287301226727e3};
  const double central_below[] = {1.0,
                                  4.2313330701600911252e1,
                                  6.8718700749205790830e2,
                                  5.3941960214247511077e3,
                                  2.1213794301586595867e4,
                                  3.9307895800092710610e4,
                                  2.8729085735721942674e4,
                                  5.2264952788528545610e3};
  const double tail_above[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                               5.76949722146069140550e0,  3.64784832476320460504e0,
                               1.27045825245236838258e0,  2.41780725177450611770e-1,
                               2.27238449892691845833e-2, 7.74545014278341407640e-4};
  const double tail_below[] = {1.0,
                               2.05319162663775882187e0,
                               1.67638483018380384940e0,
                               6.89767334985100004550e-1,
                               1.48103976427480074590e-1,
                               1.51986665636164571966e-2,
                               5.47593808499534494600e-4,
                               1.05075007164441684324e-9};
  const double q = add(p, -0.5);
  if (q >= -0.425 && q <= 0.425) {
    const double r = add(0.180625, -multiply(q, q));
    return divide(multiply(q, polynomial(central_above, r)), polynomial(central_below, r));
  }
  const double tail = q < 0 ? p : add(1.0, -p);
  const double r = add(square_root(-natural_log(tail)), -1.6);
  const double value = divide(polynomial(tail_above, r), polynomial(tail_below, r));
  return q < 0 ? -value : value;
}

/// low + (high − low) u in double, for the u in [0, 1) that `word` gives.
LLOYD_HOST_DEVICE static inline double between(double low, double high, std::uint32_t word) {
  return add(low, multiply(add(high, -low), unit24(word)));
}

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
  std::variant<UniformValues, NormalValues, BlobValues, IntegerValues> values;
  /// Fills `points` (n × dim, row-major) on all cores of the host.
  std::function<void(std::span<float> points, int dim)> draw;
};

}  // namespace lloyd::data
