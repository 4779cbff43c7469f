// Random numbers in arithmetic that gives the same bits on every machine and device.
//
// IEEE 754 fixes + − × ÷ and √ to the bit. It does not fix log and exp, nor whether a compiler
// fuses a × b + c into one rounding. So these functions are written out here, device code uses the
// intrinsics that are never fused, and host files that include this header are compiled with
// -ffp-contract=off. The functions are `static`, so that the linker cannot replace them by those of
// a file that is compiled without that option.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

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

/// e^x for x in [-700, 700]. A test checks that the relative error is below 2^-51.
///
/// x = n ln 2 + r with |r| ≤ ln 2 / 2. Ending the Taylor series at r^13 leaves a relative error of
/// r^14 / 14! < 5e-18.
LLOYD_HOST_DEVICE static inline double exponential(double x) {
  const double n = std::floor(add(multiply(x, 0x1.71547652b82fep0), 0.5));
  // ln 2 in two parts, as in natural_log().
  const double r = add(add(x, -multiply(n, 0x1.62e42feep-1)), -multiply(n, 0x1.a39ef35793c76p-33));
  const double series[] = {1.0,
                           1.0,
                           1.0 / 2,
                           1.0 / 6,
                           1.0 / 24,
                           1.0 / 120,
                           1.0 / 720,
                           1.0 / 5040,
                           1.0 / 40320,
                           1.0 / 362880,
                           1.0 / 3628800,
                           1.0 / 39916800,
                           1.0 / 479001600,
                           1.0 / 6227020800.0};
  const std::uint64_t bits = static_cast<std::uint64_t>(static_cast<int>(n) + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return multiply(polynomial(series, r), power);
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

/// A rank in 0 … count − 1, log-uniform: rank r has the share ln((r + 2) / (r + 1)) / ln(count +
/// 1), nearly in proportion to 1 / (r + 1) as by Zipf's law. `log_count` is ln(count + 1).
LLOYD_HOST_DEVICE static inline std::uint32_t zipf(std::uint32_t word, std::uint32_t count,
                                                   double log_count) {
  const double value = exponential(multiply(open_unit32(word), log_count));
  const auto rank = static_cast<std::uint32_t>(add(value, -1.0));
  return rank < count ? rank : count - 1;
}

}  // namespace lloyd::data
