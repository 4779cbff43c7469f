// Preloaded into run_experiment, this library makes every change of its run directory a place where
// it can die. A change is a call that opens a file to write, writes, syncs, renames, shortens or
// removes one, or makes a folder. Child processes do not have the library, so the supervisor dies.
//
//   CRASH_FOLDER  the run directory; changes elsewhere and of its log.txt do not count
//   CRASH_LOG     a file that gets a line for each change: its number, the call and the file
//   CRASH_AT      the number (from 1) of the change before which the process dies; 0 or absent:
//                 none
//   CRASH_HOW     kill (default): by SIGKILL
//                 torn: the same, but half of the bytes of a write are on disk
//                 fail: this one call fails with ENOSPC, a sync with EIO
//                 full: this and every later write fails with ENOSPC, after half of the bytes
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

enum class How { kill, torn, fail, full };

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

std::string text_of(const char* variable) {
  const char* value = getenv(variable);
  return value == nullptr ? "" : value;
}

How how_of(const std::string& word) {
  return word == "torn"   ? How::torn
         : word == "fail" ? How::fail
         : word == "full" ? How::full
                          : How::kill;
}

// What the environment asks for. Files that libraries open before this one is set up do not count.
struct Wish {
  std::string folder = text_of("CRASH_FOLDER");
  long at = atol(text_of("CRASH_AT").c_str());
  How how = how_of(text_of("CRASH_HOW"));
  int log = -1;
  long count = 0;

  Wish();
};
bool ready = false;
Wish wish;

Wish::Wish() {
  const std::string file = text_of("CRASH_LOG");
  if (!file.empty()) log = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  unsetenv("LD_PRELOAD");
  ready = !folder.empty();
}

std::string path_of(int descriptor) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path);
  return length < 0 ? "" : std::string(path, static_cast<std::size_t>(length));
}

std::string path_of(int directory, const char* name) {
  if (name[0] == '/') return name;
  if (directory != AT_FDCWD) return path_of(directory) + '/' + name;
  char here[PATH_MAX];
  return getcwd(here, sizeof here) == nullptr ? name : std::string(here) + '/' + name;
}

// Whether this change of `path` is the one, or, of a full disk, comes after it.
bool hit(const char* call, const std::string& path) {
  if (!ready) return false;
  const std::string& folder = wish.folder;
  if (path.compare(0, folder.size(), folder) != 0) return false;
  if (path.size() > folder.size() && path[folder.size()] != '/') return false;
  if (path.ends_with("/log.txt")) return false;  // written by a thread, whenever
  ++wish.count;
  if (wish.log >= 0) {
    const std::string line = std::to_string(wish.count) + ' ' + call + ' ' + path + '\n';
    static const auto write_line = real<ssize_t (*)(int, const void*, size_t)>("write");
    if (write_line(wish.log, line.data(), line.size()) < 0) abort();
  }
  return wish.at > 0 && (wish.count == wish.at || (wish.how == How::full && wish.count > wish.at));
}

// A call that is no write: dies, or says how it fails. A full disk stops writes alone.
bool stopped(const char* call, const std::string& path, int error) {
  if (!hit(call, path)) return false;
  if (wish.how == How::kill || wish.how == How::torn) kill(getpid(), SIGKILL);
  if (wish.how == How::full) return false;
  errno = error;
  return true;
}

int open_at(const char* call, int directory, const char* name, int flags, mode_t mode) {
  static const auto next = real<int (*)(int, const char*, int, ...)>("openat");
  if ((flags & (O_WRONLY | O_RDWR)) != 0 && stopped(call, path_of(directory, name), ENOSPC))
    return -1;
  return next(directory, name, flags, mode);
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

#define LLOYD_OPEN(name)                                 \
  int name(const char* path, int flags, ...) {           \
    va_list arguments;                                   \
    va_start(arguments, flags);                          \
    const mode_t mode = mode_of(flags, arguments);       \
    va_end(arguments);                                   \
    return open_at("open", AT_FDCWD, path, flags, mode); \
  }
LLOYD_OPEN(open)
LLOYD_OPEN(open64)

#define LLOYD_OPENAT(name)                                    \
  int name(int directory, const char* path, int flags, ...) { \
    va_list arguments;                                        \
    va_start(arguments, flags);                               \
    const mode_t mode = mode_of(flags, arguments);            \
    va_end(arguments);                                        \
    return open_at("open", directory, path, flags, mode);     \
  }
LLOYD_OPENAT(openat)
LLOYD_OPENAT(openat64)

ssize_t write(int descriptor, const void* bytes, size_t size) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (ready && hit("write", path_of(descriptor))) {
    if (wish.how == How::torn || (wish.how == How::full && wish.count == wish.at)) {
      const ssize_t written = next(descriptor, bytes, size / 2);
      if (wish.how == How::full && written > 0) return written;
    }
    if (wish.how == How::kill || wish.how == How::torn) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return -1;
  }
  return next(descriptor, bytes, size);
}

ssize_t writev(int descriptor, const struct iovec* parts, int number) {
  static const auto next = real<ssize_t (*)(int, const struct iovec*, int)>("writev");
  if (ready && hit("writev", path_of(descriptor))) {
    if (wish.how == How::kill || wish.how == How::torn) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return -1;
  }
  return next(descriptor, parts, number);
}

int fsync(int descriptor) {
  static const auto next = real<int (*)(int)>("fsync");
  return stopped("fsync", path_of(descriptor), EIO) ? -1 : next(descriptor);
}

int rename(const char* from, const char* to) {
  static const auto next = real<int (*)(const char*, const char*)>("rename");
  return stopped("rename", path_of(AT_FDCWD, to), ENOSPC) ? -1 : next(from, to);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  static const auto next = real<int (*)(int, const char*, int, const char*)>("renameat");
  return stopped("rename", path_of(to_folder, to), ENOSPC) ? -1
                                                           : next(from_folder, from, to_folder, to);
}

int ftruncate(int descriptor, off_t size) {
  static const auto next = real<int (*)(int, off_t)>("ftruncate");
  return stopped("ftruncate", path_of(descriptor), EIO) ? -1 : next(descriptor, size);
}

int unlink(const char* path) {
  static const auto next = real<int (*)(const char*)>("unlink");
  return stopped("unlink", path_of(AT_FDCWD, path), EIO) ? -1 : next(path);
}

int unlinkat(int directory, const char* path, int flags) {
  static const auto next = real<int (*)(int, const char*, int)>("unlinkat");
  return stopped("unlink", path_of(directory, path), EIO) ? -1 : next(directory, path, flags);
}

int mkdir(const char* path, mode_t mode) {
  static const auto next = real<int (*)(const char*, mode_t)>("mkdir");
  return stopped("mkdir", path_of(AT_FDCWD, path), ENOSPC) ? -1 : next(path, mode);
}

}  // extern "C"
