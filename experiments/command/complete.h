// What the shell offers at <TAB>.
//
// The completion scripts pass the words up to the cursor (`run_experiment --complete -- WORD…`) and
// show the answer, so that the scripts know no options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lloyd {

struct Completion {
  struct Candidate {
    std::string word, text;
  };
  /// What the shell adds of its own.
  enum class Files { none, any, folders, specs };

  std::vector<Candidate> candidates;
  Files files = Files::none;

  /// A line "word<TAB>text" for each candidate, then ":files", ":folders" or ":specs".
  std::string lines() const;
};

/// `words` are those after the program's name. The last one, which may be empty, is completed.
Completion complete(std::vector<std::string> words);

/// The script that makes bash, zsh or fish ask the program.
std::string_view completion_script(std::string_view shell);

}  // namespace lloyd
