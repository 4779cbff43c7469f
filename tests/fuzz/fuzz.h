// What the fuzz targets share. A target calls one function with any bytes, catches the errors that it documents and
// checks what must hold of everything that is accepted; whatever else happens is a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

/// libFuzzer calls it once for each input; run_corpus.cpp for each file of a corpus.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace lloyd::fuzz {

/// Ends the process as a crash does, after it has said what does not hold.
[[noreturn]] void finding(std::string_view what, std::string_view of = "");
inline void require(bool holds, std::string_view what, std::string_view of = "") {
  if (!holds) finding(what, of);
}
/// An error message: not empty, and UTF-8, since it goes into rows and onto terminals.
void require_message(std::string_view message);

/// A folder of this process for the files that a target writes; removed at exit.
const std::filesystem::path& scratch_folder();
/// Gives a file of that folder this content.
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace lloyd::fuzz
