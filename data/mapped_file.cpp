#include "data/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "data/dataset.h"

namespace lloyd::data {
namespace {

/// Closes on every way out of the constructor; the mapping outlives its descriptor.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) close(value);
  }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const std::string name = path.string();
  const auto fail = [&](const char* attempt) {
    throw DataError(
        fmt::format("{}: {}: {}", name, attempt, std::generic_category().message(errno)));
  };
  // Without O_NONBLOCK, opening a named pipe would wait for a writer before it can be refused.
  const Descriptor file{open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) {
    if (errno == ENOENT) throw DataError(fmt::format("{}: no such file", name));
    fail("cannot be opened");
  }
  struct stat status;
  if (fstat(file.value, &status) != 0) fail("cannot be examined");
  if (S_ISDIR(status.st_mode)) {
    throw DataError(fmt::format("{}: is a directory; a data file is needed", name));
  }
  if (!S_ISREG(status.st_mode)) {
    throw DataError(fmt::format("{}: is not a regular file; copy its content into one", name));
  }
  if (status.st_size == 0) throw DataError(fmt::format("{}: is empty", name));
  void* const address = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ,
                             MAP_PRIVATE, file.value, 0);
  if (address == MAP_FAILED) fail("cannot be mapped into memory");
  address_ = address;
  size_ = static_cast<std::size_t>(status.st_size);
}

MappedFile::~MappedFile() {
  if (address_) munmap(address_, size_);
}

}  // namespace lloyd::data
