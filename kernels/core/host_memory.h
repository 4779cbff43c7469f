// Host memory that kernels read and write over the link: for what does not fit on the device.
#pragma once

#include <cstddef>
#include <utility>

namespace lloyd::cuda {

/// `bytes` of pinned host memory that is mapped into the device's address space, on large pages
/// where the system has them. Throws Unsupported, with the sizes, when the system does not give or
/// pin so much.
void* allocate_mapped(std::size_t bytes);
void release_mapped(void* pointer, std::size_t bytes) noexcept;

/// `size` values of T in such memory, zero at first. A kernel reads and writes it by the host's own
/// pointer. The destructor frees it: kernels must be done.
template <typename T>
class MappedBuffer {
 public:
  MappedBuffer() = default;
  explicit MappedBuffer(std::size_t size)
      : data_(static_cast<T*>(allocate_mapped(size * sizeof(T)))), size_(size) {}
  MappedBuffer(MappedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedBuffer& operator=(MappedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedBuffer() { release_mapped(data_, size_ * sizeof(T)); }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace lloyd::cuda
