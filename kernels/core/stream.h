// A CUDA stream with an owner.
#pragma once

#include "kernels/core/cuda.h"

namespace lloyd::cuda {

/// A stream of the current device. It does not wait for the default stream.
class Stream {
 public:
  Stream() { LLOYD_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace lloyd::cuda
