// Regular expressions that a user enters.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

namespace re2 {
class RE2;
}

namespace lloyd {

/// A regular expression in RE2's syntax (Perl's without look-around and back-references). The time
/// of a match is linear in the length of the text for every pattern.
class Pattern {
 public:
  /// The text is not a regular expression. what() quotes it and says what is wrong, and where.
  struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

  explicit Pattern(const std::string& text);
  ~Pattern();
  Pattern(const Pattern&) = delete;

  bool found_in(const std::string& text) const;

 private:
  std::unique_ptr<re2::RE2> expression_;
};

}  // namespace lloyd
