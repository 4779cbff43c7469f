// Kinds of coordinates that tests draw points and centroids from.
#pragma once

#include <functional>
#include <random>
#include <string>

namespace lloyd::fast_cpu {

struct Space {
  std::string name;
  std::function<float(std::mt19937&)> coordinate;
};

inline float normal(std::mt19937& random) { return std::normal_distribution<float>()(random); }

}  // namespace lloyd::fast_cpu
