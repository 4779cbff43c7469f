#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "experiments/text/text.h"

namespace lloyd::fuzz {
namespace fs = std::filesystem;
namespace {

struct Scratch {
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "lloydbench-fuzz-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) finding("cannot make a folder", pattern);
    path = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

}  // namespace

void finding(std::string_view what, std::string_view of) {
  std::fprintf(stderr, "FINDING: %.*s: %s\n", static_cast<int>(what.size()), what.data(),
               for_terminal(of).c_str());
  std::abort();
}

void require_message(std::string_view message) {
  require(!message.empty(), "an error without a message");
  require(invalid_utf8(message) == std::string_view::npos, "a message that is not UTF-8", message);
}

const fs::path& scratch_folder() {
  static const Scratch scratch;
  return scratch.path;
}

void write_file(const fs::path& file, std::string_view content) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const ssize_t wrote = write(descriptor, content.data(), content.size());
  close(descriptor);
  require(wrote == static_cast<ssize_t>(content.size()), "cannot write", file.string());
}

}  // namespace lloyd::fuzz
