// Shared by the fuzz targets. A target passes arbitrary bytes to one function. It catches the
// errors that the function documents and checks the properties of everything that is accepted.
// Anything else is a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

/// libFuzzer calls this once per input. run_corpus.cpp calls it for each file of a corpus.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace lloyd::fuzz {

/// Prints the violated property and ends the process like a crash.
[[noreturn]] void finding(std::string_view what, std::string_view of = "");
inline void require(bool holds, std::string_view what, std::string_view of = "") {
  if (!holds) finding(what, of);
}
/// Checks an error message: it must not be empty, and it must be UTF-8, because it goes into rows
/// and to terminals.
void require_message(std::string_view message);

/// The folder of this process for the files that a target writes. It is removed at exit.
const std::filesystem::path& scratch_folder();
/// Writes `content` to a file of that folder.
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace lloyd::fuzz
