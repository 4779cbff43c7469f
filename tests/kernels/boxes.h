// Data that is hard for the boxes of fast_grid and fast_cpu_tree, and a fixture that runs the two.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "experiments/measure/session.h"
#include "tests/kernels/open_gpu.h"

namespace lloyd {

struct Data {
  std::vector<float> points, centroids;
};

inline std::vector<float> normal(std::size_t values, double offset, double scale,
                                 std::mt19937& random) {
  std::normal_distribution<double> draw;
  std::vector<float> all(values);
  for (float& x : all) x = static_cast<float>(offset + scale * draw(random));
  return all;
}

// The first k points are the initial centroids.
inline Data from_first(std::vector<float> points, int k, int dim) {
  Data data{std::move(points), {}};
  data.centroids.assign(data.points.begin(),
                        data.points.begin() + static_cast<std::ptrdiff_t>(k) * dim);
  return data;
}

inline std::function<Data(int, std::mt19937&)> gaussian(int n, int k, double offset = 0,
                                                        double scale = 1) {
  return [=](int dim, std::mt19937& random) {
    return from_first(
        normal(static_cast<std::size_t>(n) * static_cast<std::size_t>(dim), offset, scale, random),
        k, dim);
  };
}

// Blobs of very different widths, and one point so far away that all others are in one cell of the
// curve's grid.
inline Data blobs_and_an_outlier(int dim, std::mt19937& random) {
  std::vector<float> points;
  for (int blob = 0; blob < 40; ++blob) {
    const auto at = normal(static_cast<std::size_t>(dim), 0, 100, random);
    auto spread =
        normal(1000 * static_cast<std::size_t>(dim), 0, std::pow(10.0, blob % 6 - 4), random);
    for (std::size_t i = 0; i < spread.size(); ++i)
      points.push_back(spread[i] + at[i % static_cast<std::size_t>(dim)]);
  }
  std::vector<float> mixed;  // the first centroids from different blobs
  for (std::size_t i = 0; i < 1000; ++i)
    for (std::size_t blob = 0; blob < 40; ++blob)
      for (std::size_t t = 0; t < static_cast<std::size_t>(dim); ++t)
        mixed.push_back(points[(blob * 1000 + i) * static_cast<std::size_t>(dim) + t]);
  mixed.back() = 1e15f;
  return from_first(std::move(mixed), 150, dim);
}

// Points on a sphere and centroids near its centre, which are all nearly equally far from every
// point.
inline Data sphere(int dim, std::mt19937& random) {
  Data data{normal(20'000 * static_cast<std::size_t>(dim), 0, 1, random),
            normal(2'500 * static_cast<std::size_t>(dim), 0, 1e-3, random)};
  for (std::size_t i = 0; i < data.points.size(); i += static_cast<std::size_t>(dim)) {
    double norm = 0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(dim); ++t)
      norm += data.points[i + t] * data.points[i + t];
    for (std::size_t t = 0; t < static_cast<std::size_t>(dim); ++t)
      data.points[i + t] = static_cast<float>(data.points[i + t] / std::sqrt(norm));
  }
  return data;
}

// Integers and halves: all distances are exact, and most points are equally far from several
// centroids, some of which coincide.
inline Data exact_ties(int dim, std::mt19937& random) {
  std::uniform_int_distribution<int> draw(-40, 40);
  Data data;
  data.points.resize(30'000 * static_cast<std::size_t>(dim));
  data.centroids.resize(300 * static_cast<std::size_t>(dim));
  for (float& x : data.points) x = 0.5f * static_cast<float>(draw(random));
  for (float& c : data.centroids) c = std::round(0.25f * static_cast<float>(draw(random)));
  return data;
}

inline Data equal_points(int dim, std::mt19937& random) {
  Data data{std::vector<float>(20'000 * static_cast<std::size_t>(dim), 0.7f),
            normal(1'500 * static_cast<std::size_t>(dim), 0.7, 1, random)};
  for (std::size_t c = data.centroids.size() / 2; c < data.centroids.size(); ++c)
    data.centroids[c] = 0.7f;
  return data;
}

class Boxes : public testing::Test {
 protected:
  // Skips the test, with the reason, where this machine cannot run the version.
  void open(const std::string& name) {
    version_ = find_version(name);
    if (version_->make == nullptr) GTEST_SKIP() << version_->unavailable;
    context_.tunables.threads = 3;
    if (version_->info.backend == Backend::cpu) {
      session_ = make_cpu_session();
      return;
    }
    if (const std::string why_not = open_gpu(session_, context_); !why_not.empty())
      GTEST_SKIP() << why_not;
  }

  static Problem problem_of(const Data& data, int dim, Stop stop) {
    return {.n = static_cast<std::int64_t>(data.points.size()) / dim,
            .k = static_cast<int>(data.centroids.size()) / dim,
            .dim = dim,
            .stop = stop,
            .points = data.points,
            .centroids = data.centroids};
  }

  const RegisteredVersion* version_ = nullptr;
  std::unique_ptr<Session> session_;
  Context context_;
};

}  // namespace lloyd
