// Points that are not in memory as floats: they are in memory in 16 bits, or in a file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

/// The n × dim coordinates of a problem in 16 bits, counted along the rows. Any number of threads
/// may read them.
class PointRows {
 public:
  virtual ~PointRows() = default;
  /// Reads coordinates from number `first` on.
  virtual void read(std::int64_t first, std::span<float> out) const = 0;
  /// The same in the 16 bits of the problem's precision.
  virtual void read(std::int64_t first, std::span<std::uint16_t> out) const = 0;
  /// Reads `width` coordinates from number `first` on, as many from number `first + stride` on, and
  /// so on: some columns of points.
  virtual void read_columns(std::int64_t first, std::int64_t stride, std::int64_t width,
                            std::span<float> out) const;
  /// Says that these coordinates are read soon.
  virtual void expect(std::int64_t /*first*/, std::int64_t /*count*/) const {}
};

/// Points in memory, in 16 bits.
class HalfRows : public PointRows {
 public:
  /// `halves` must outlive this object.
  HalfRows(std::span<const std::uint16_t> halves, Precision precision)
      : halves_(halves), precision_(precision) {}

  void read(std::int64_t first, std::span<float> out) const override;
  void read(std::int64_t first, std::span<std::uint16_t> out) const override;
  void read_columns(std::int64_t first, std::int64_t stride, std::int64_t width,
                    std::span<float> out) const override;
  std::span<const std::uint16_t> halves() const { return halves_; }

 private:
  std::span<const std::uint16_t> halves_;
  Precision precision_;
};

/// The coordinates of `whole` from number `begin` on.
class PartOfRows : public PointRows {
 public:
  /// `whole` must outlive this object.
  PartOfRows(const PointRows& whole, std::int64_t begin) : whole_(whole), begin_(begin) {}

  void read(std::int64_t first, std::span<float> out) const override {
    whole_.read(begin_ + first, out);
  }
  void read(std::int64_t first, std::span<std::uint16_t> out) const override {
    whole_.read(begin_ + first, out);
  }
  void read_columns(std::int64_t first, std::int64_t stride, std::int64_t width,
                    std::span<float> out) const override {
    whole_.read_columns(begin_ + first, stride, width, out);
  }
  void expect(std::int64_t first, std::int64_t count) const override {
    whole_.expect(begin_ + first, count);
  }

 private:
  const PointRows& whole_;
  std::int64_t begin_;
};

/// `count` points of a problem from number `first` on, as floats: in place or, where they are not
/// in memory, read into `memory`.
std::span<const float> points_of(const Problem& problem, std::int64_t first, std::int64_t count,
                                 std::vector<float>& memory);

/// How many points are read into memory at once: few enough to fit beside anything, and enough to
/// share among threads.
std::int64_t points_at_once(int dim);

/// Calls visit(first, count, points as floats) for all points of a problem, in order: once where
/// they are in memory, else for points_at_once() at a time.
template <typename Visit>
void for_all_points(const Problem& problem, Visit&& visit) {
  const std::int64_t step = problem.rows == nullptr ? problem.n : points_at_once(problem.dim);
  std::vector<float> memory;
  for (std::int64_t first = 0; first < problem.n; first += step) {
    const std::int64_t count = step < problem.n - first ? step : problem.n - first;
    visit(first, count, points_of(problem, first, count, memory));
  }
}

}  // namespace lloyd
