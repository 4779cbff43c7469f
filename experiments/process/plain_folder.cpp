#include "experiments/process/plain_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <streambuf>
#include <system_error>
#include <utility>
#include <vector>

namespace lloyd {
namespace fs = std::filesystem;
namespace {

constexpr const char* kUnfinishedEnding = ".new";

[[noreturn]] void fail(const char* what, const fs::path& path) {
  throw std::system_error(errno, std::generic_category(),
                          fmt::format("cannot {} {}", what, path.string()));
}

// Owns a descriptor and closes it in the destructor.
class Opened {
 public:
  Opened(int descriptor, fs::path path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~Opened() { close(descriptor_); }
  Opened(const Opened&) = delete;

  int get() const { return descriptor_; }
  const fs::path& path() const { return path_; }
  void write(const char* text, std::size_t size) const {
    for (std::size_t done = 0; done < size;) {
      const ssize_t wrote = ::write(descriptor_, text + done, size - done);
      if (wrote < 0) {
        if (errno == EINTR) continue;
        fail("write", path_);
      }
      done += static_cast<std::size_t>(wrote);
    }
  }
  void sync() const {
    if (fsync(descriptor_) != 0) fail("write", path_);
  }
  void cut(off_t size) const {
    if (ftruncate(descriptor_, size) != 0) fail("shorten", path_);
  }

 private:
  int descriptor_;
  fs::path path_;
};

// A stream buffer that writes to a file. It reports errors by exceptions, which a stream passes on
// only if exceptions() allows it.
class Buffer : public std::streambuf {
 public:
  explicit Buffer(const Opened& file) : file_(file) {
    setp(block_.data(), block_.data() + block_.size());
  }

 protected:
  int_type overflow(int_type next) override {
    sync();
    if (!traits_type::eq_int_type(next, traits_type::eof())) sputc(traits_type::to_char_type(next));
    return traits_type::not_eof(next);
  }
  int sync() override {
    file_.write(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    setp(block_.data(), block_.data() + block_.size());
    return 0;
  }

 private:
  const Opened& file_;
  std::array<char, 1 << 16> block_;
};

const char* kind(mode_t mode) {
  return S_ISLNK(mode) ? "a symbolic link" : S_ISDIR(mode) ? "a folder" : "no regular file";
}

}  // namespace

PlainFolder::PlainFolder(fs::path path)
    : path_(std::move(path)), folder_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_ < 0) fail("open", path_);
}

PlainFolder::PlainFolder(PlainFolder&& other) noexcept
    : path_(std::move(other.path_)), folder_(std::exchange(other.folder_, -1)) {}

PlainFolder::~PlainFolder() {
  if (folder_ >= 0) close(folder_);
}

bool PlainFolder::has(const std::string& name) const {
  struct stat entry {};
  if (fstatat(folder_, name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return false;
    fail("look at", path_ / name);
  }
  if (!S_ISREG(entry.st_mode))
    throw NotPlain(fmt::format("{}: is {}; a plain file is needed there", (path_ / name).string(),
                               kind(entry.st_mode)));
  return true;
}

int PlainFolder::open(const std::string& name, int flags) const {
  has(name);  // only for its message; the opened file is checked below
  // Without O_NONBLOCK, opening a pipe that has replaced the file would wait for its other end.
  const int descriptor =
      openat(folder_, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
  if (descriptor < 0) fail("open", path_ / name);
  struct stat entry {};
  if (fstat(descriptor, &entry) != 0 || !S_ISREG(entry.st_mode)) {
    close(descriptor);
    throw NotPlain(fmt::format("{}: is not a regular file", (path_ / name).string()));
  }
  return descriptor;
}

InputFile PlainFolder::input(const std::string& name) const {
  if (!has(name)) return nullptr;
  const int descriptor = open(name, O_RDONLY);
  InputFile file(fdopen(descriptor, "r"));
  if (!file) fail("read", path_ / name);
  return file;
}

void PlainFolder::sync() const {
  if (fsync(folder_) != 0) fail("write", path_);
}

void PlainFolder::replace(const std::string& name,
                          const std::function<void(std::ostream&)>& fill) const {
  const std::string temporary = unfinished(name);
  remove(temporary);
  try {
    const Opened file(open(temporary, O_WRONLY | O_CREAT | O_EXCL), path_ / temporary);
    Buffer buffer(file);
    std::ostream out(&buffer);
    out.exceptions(std::ios::badbit | std::ios::failbit);
    fill(out);
    out.flush();
    file.sync();
    if (renameat(folder_, temporary.c_str(), folder_, name.c_str()) != 0)
      fail("rename", path_ / temporary);
  } catch (...) {
    unlinkat(folder_, temporary.c_str(), 0);  // report the first error, not one of unlinkat
    throw;
  }
  sync();
}

void PlainFolder::append(const std::string& name, const std::string& text) const {
  const bool fresh = !has(name);
  const Opened file(open(name, O_WRONLY | O_APPEND | (fresh ? O_CREAT | O_EXCL : 0)), path_ / name);
  const off_t before = lseek(file.get(), 0, SEEK_END);
  try {
    file.write(text.data(), text.size());
    file.sync();
  } catch (...) {
    file.cut(before);
    throw;
  }
  if (fresh) sync();
}

void PlainFolder::shorten(const std::string& name, off_t size) const {
  const Opened file(open(name, O_WRONLY), path_ / name);
  file.cut(size);
  file.sync();
}

void PlainFolder::remove(const std::string& name) const {
  if (unlinkat(folder_, name.c_str(), 0) != 0 && errno != ENOENT) fail("remove", path_ / name);
}

std::string PlainFolder::unfinished(const std::string& name) { return name + kUnfinishedEnding; }

void PlainFolder::remove_unfinished() const {
  for (const auto& entry : fs::directory_iterator(path_))
    if (entry.path().extension() == kUnfinishedEnding) remove(entry.path().filename());
}

void make_folder(const fs::path& path) {
  std::vector<fs::path> missing;
  for (fs::path at = fs::absolute(path).lexically_normal(); !fs::exists(at); at = at.parent_path())
    missing.push_back(at);
  fs::create_directories(path);
  for (const fs::path& made : missing) {
    const Opened parent(::open(made.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                        made);
    if (parent.get() < 0) fail("open", made.parent_path());
    parent.sync();
  }
}

}  // namespace lloyd
