// Runs numbered chunks of work on several threads, with the errors of a sequential loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

#include "kernels/core/cores.h"

namespace lloyd::data {

/// Calls work(0) … work(count − 1) on `threads` threads (0: available_cores()). If chunks throw,
/// rethrows the exception of the lowest one, so that the error does not depend on the number of
/// threads.
template <class Work>
void parallel_chunks(std::int64_t count, int threads, const Work& work) {
  std::atomic<std::int64_t> failed{count};
  std::exception_ptr error;
  std::mutex mutex;
  if (threads <= 0) threads = count > 1 ? available_cores() : 1;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    if (chunk > failed) continue;
    try {
      work(chunk);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (chunk < failed) {
        failed = chunk;
        error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

/// Calls work(begin, end, chunk) for rows 0 … n − 1 in chunks of `rows` rows. The chunks do not
/// depend on `threads`.
template <class Work>
void parallel_rows(std::int64_t n, std::int64_t rows, int threads, const Work& work) {
  parallel_chunks((n + rows - 1) / rows, threads, [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * rows;
    work(begin, n - begin < rows ? n : begin + rows, chunk);
  });
}

}  // namespace lloyd::data
