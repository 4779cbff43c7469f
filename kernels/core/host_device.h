// LLOYD_HOST_DEVICE marks functions that CUDA code and the host share.
#pragma once

#if defined(__CUDACC__)
#define LLOYD_HOST_DEVICE __host__ __device__
#else
#define LLOYD_HOST_DEVICE
#endif
