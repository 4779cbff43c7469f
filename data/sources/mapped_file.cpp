#include "data/sources/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <system_error>

#include "data/sources/dataset.h"
#include "data/sources/text.h"

namespace lloyd::data {
namespace {

/// What the SIGBUS handler must know about a mapping. Atomic, because the handler may run in any
/// thread at any time.
struct Mapping {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // begin = 0: the slot is free
  std::atomic<bool> lost{false};                 // a page could not be read
};

// At most a few files are open at once: data, for each number of dimensions, and init_file.
std::array<Mapping, 16> mappings;
std::mutex mappings_in_use;
struct sigaction action_before;
std::uintptr_t page_size;  // set before the handler, which may not call sysconf()

/// Maps zeros over the lost page and all later pages of its file. Makes only system calls.
void on_lost_page(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Mapping& mapping : mappings) {
    const std::uintptr_t begin = mapping.begin, end = mapping.end;
    if (begin == 0 || address < begin || address >= end) continue;
    const std::uintptr_t in_page = address % page_size;
    char* const from = static_cast<char*>(info->si_addr) - in_page;
    const int error = errno;
    void* const zeros = mmap(from, end - (address - in_page), PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    errno = error;
    if (zeros == MAP_FAILED) break;
    mapping.lost = true;
    return;
  }
  // The address is not ours, or there are no zeros: behave as if this handler were not installed.
  if ((action_before.sa_flags & SA_SIGINFO) != 0) {
    action_before.sa_sigaction(signal, info, context);
  } else if (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN) {
    action_before.sa_handler(signal);
  } else {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
}

std::size_t take_slot(std::uintptr_t begin, std::size_t size) {
  const std::lock_guard lock(mappings_in_use);
  static const bool installed = [] {
    page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_lost_page;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &action_before) == 0;
  }();
  if (!installed) throw DataError("the handler of SIGBUS cannot be set");
  for (std::size_t slot = 0; slot < mappings.size(); ++slot) {
    if (mappings[slot].begin != 0) continue;
    mappings[slot].lost = false;
    mappings[slot].end = begin + size;
    mappings[slot].begin = begin;
    return slot;
  }
  throw DataError(fmt::format("more than {} files are open", mappings.size()));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer before it can be refused.
  file_ = open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) {
    if (errno == ENOENT) throw DataError(fmt::format("{}: no such file", name_));
    fail("cannot be opened");
  }
  try {
    struct stat status;
    if (fstat(file_, &status) != 0) fail("cannot be examined");
    if (S_ISDIR(status.st_mode))
      throw DataError(fmt::format("{}: is a directory; a data file is needed", name_));
    if (!S_ISREG(status.st_mode))
      throw DataError(fmt::format("{}: is not a regular file; copy its content into one", name_));
    if (status.st_size == 0) throw DataError(fmt::format("{}: is empty", name_));
    size_ = static_cast<std::size_t>(status.st_size);
    modified_ = status.st_mtim;
    void* const address = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_, 0);
    if (address == MAP_FAILED) fail("cannot be mapped into memory");
    address_ = address;
    slot_ = take_slot(reinterpret_cast<std::uintptr_t>(address_), size_);
  } catch (...) {
    if (address_) munmap(address_, size_);
    close(file_);
    throw;
  }
}

MappedFile::~MappedFile() {
  mappings[slot_].begin = 0;
  munmap(address_, size_);
  close(file_);
}

// Advice that the system does not take changes nothing but the time.
void MappedFile::is_read_in_order() const { madvise(address_, size_, MADV_SEQUENTIAL); }

void MappedFile::will_be_read(std::string_view part) const {
  char* const file = static_cast<char*>(address_);  // begins at a page
  const auto begin = static_cast<std::size_t>(part.data() - file), in_page = begin % page_size;
  madvise(file + (begin - in_page), part.size() + in_page, MADV_WILLNEED);
}

void MappedFile::check_unchanged() const {
  struct stat now;
  if (fstat(file_, &now) != 0) fail("cannot be examined");
  const auto size = static_cast<std::size_t>(now.st_size);
  if (size != size_) {
    throw DataError(
        fmt::format("{}: was {} while it was read: {} B when it was opened, {} B now; try again "
                    "when no program writes to it",
                    name_, size < size_ ? "truncated" : "extended",
                    grouped(static_cast<std::int64_t>(size_)), grouped(now.st_size)));
  }
  if (now.st_mtim.tv_sec != modified_.tv_sec || now.st_mtim.tv_nsec != modified_.tv_nsec) {
    throw DataError(fmt::format(
        "{}: was changed while it was read; try again when no program writes to it", name_));
  }
  if (mappings[slot_].lost) {
    throw DataError(
        fmt::format("{}: could not be read: the disk or the network gave an error", name_));
  }
}

void MappedFile::fail(const char* attempt) const {
  throw DataError(
      fmt::format("{}: {}: {}", name_, attempt, std::generic_category().message(errno)));
}

}  // namespace lloyd::data
