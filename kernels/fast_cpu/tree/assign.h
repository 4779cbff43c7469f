// One iteration's work on a part of the tree: candidates go down, sums come back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/fast_cpu/tree/labels.h"
#include "kernels/fast_cpu/tree/tree.h"

namespace lloyd::fast_cpu {

/// The centroids as the tree sees them: dim × stride coordinates, whose stride is a multiple of
/// every vector width.
class PlacedCentroids {
 public:
  PlacedCentroids(int k, int dim)
      : k_(k),
        dim_(dim),
        stride_((k + kFan - 1) / kFan * kFan),
        at_(untouched<float>(dim * stride_)) {
    std::fill_n(at_.get(), dim * stride_, 0.0f);
  }
  int k() const { return k_; }
  int dim() const { return dim_; }
  float* column(int t) { return at_.get() + t * stride_; }
  const float* column(int t) const { return at_.get() + t * stride_; }

 private:
  int k_, dim_;
  std::int64_t stride_;
  Untouched<float> at_;
};

/// A part of the tree that one thread takes at a time: some neighbours of one block.
struct Piece {
  int level;
  std::int64_t block;
  std::uint32_t nodes;  // which nodes of the block, as bits
  float low[kMostTreeDims], high[kMostTreeDims];

  // What assign_piece() returns: the centroids that may be nearest to a point of the piece, in
  // ascending order, and for each of them `dim` sums and the number of points.
  std::vector<std::int32_t> ids;
  std::vector<double> sums;
  std::int64_t changes = 0;  // points that changed cluster, if they are counted
};

/// The pieces of a tree: their number depends on the number of points only.
std::vector<Piece> pieces_of(const Tree& tree);

/// What a thread writes on the way down: for each level the candidates of the box it is in.
class Scratch {
 public:
  Scratch(int k, int dim, int levels)
      : room_(k + kFan),
        dim_(dim),
        ids_(untouched<std::int32_t>(room_)),
        lists_(untouched<unsigned char>(list_bytes() * (levels + 1))),
        kept_(untouched<std::uint16_t>(room_ * levels)) {}
  std::int32_t* ids() { return ids_.get(); }
  /// Room for k candidates of `dim` coordinates and a position.
  void* list(int depth) { return lists_.get() + depth * list_bytes(); }
  std::uint16_t* kept(int level) { return kept_.get() + level * room_; }

 private:
  std::int64_t list_bytes() const { return room_ * (dim_ + 1) * 4; }

  std::int64_t room_;
  int dim_;
  Untouched<std::int32_t> ids_;
  Untouched<unsigned char> lists_;
  Untouched<std::uint16_t> kept_;
};

/// Fills in ids, sums and changes of `piece`. `labels`: null where this iteration's are not needed.
void assign_piece(const Tree& tree, const PlacedCentroids& centroids, Piece& piece,
                  LeafLabels* labels, Scratch& scratch);

/// The centroids that may be nearest to a point of the box, in ascending order. `ids`: room for
/// k + kFan. Returns their number.
int filter_box(const float* low, const float* high, const PlacedCentroids& centroids,
               std::int32_t* ids);

}  // namespace lloyd::fast_cpu
