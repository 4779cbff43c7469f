// The host's side of tma.cuh: how the copy engine reads a matrix.
#pragma once

#include <cuda.h>  // CUtensorMap
#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/layout.cuh"

namespace lloyd::fast::ptx {

/// For a row-major matrix of `rows` rows of `columns` values (__half or __nv_bfloat16), read in
/// boxes of box_rows rows and one panel of columns, which arrive with the 128-byte swizzle.
template <typename T>
CUtensorMap tensor_map(const T* values, std::int64_t rows, int columns, int box_rows) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found{};
  LLOYD_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12'000,
                                                    cudaEnableDefault, &found));
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * sizeof(T)};
  const cuuint32_t box[] = {kPanel, static_cast<cuuint32_t>(box_rows)}, steps[] = {1, 1};
  CUtensorMap map{};
  const CUresult result =
      found != cudaDriverEntryPointSuccess
          ? CUDA_ERROR_NOT_FOUND
          : reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
                &map,
                std::is_same_v<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                          : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                2, const_cast<T*>(values), sizes, pitch, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled: error " + std::to_string(result));
  return map;
}

}  // namespace lloyd::fast::ptx
