// The errors of a spec, each with the place where it was written.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace lloyd {

/// Where something was written: a line and column of the spec (from 1), or an option of the command
/// line.
struct Place {
  int line = 0;
  int column = 0;
  std::string option;  // "--set"; then line and column mean nothing
};

/// Collects the errors of a spec, so that all are reported together.
class Errors {
 public:
  explicit Errors(std::string file) : file_(std::move(file)) {}
  void add(const Place& place, const std::string& message);
  std::size_t count() const { return errors_.size(); }
  /// In the order of the file, then those of the command line; each once.
  std::vector<std::string> sorted() const;

 private:
  struct Error {
    Place place;
    std::string message;
  };
  std::string file_;
  std::vector<Error> errors_;
};

}  // namespace lloyd
