#define XXH_INLINE_ALL
#include "experiments/process/program_files.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "build_info.h"

namespace lloyd {

std::filesystem::path home_directory() {
  if (const char* home = std::getenv("LLOYDBENCH_HOME"); home != nullptr && *home != '\0')
    return home;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path around = program.parent_path().parent_path();
  const std::filesystem::path installed = around / "share" / "lloydbench";
  if (std::filesystem::is_directory(installed / "experiments")) return installed;
  // A tree that was moved or copied with its build folder has its own specs and versions.
  if (std::filesystem::is_directory(around / "experiments" / "sweeps") &&
      std::filesystem::is_directory(around / "kernels" / "python"))
    return around;
  return build_info::source_dir;
}

std::string program_path() {
  if (const char* launcher = std::getenv("LLOYDBENCH_EXEC")) return launcher;
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

std::string program_as_typed() {
  return std::getenv("LLOYDBENCH_EXEC") ? program_path() : program_invocation_name;
}

std::string binary_fingerprint() {
  // If the program was started through a separate loader, /proc/self/exe is that loader. The
  // launcher of the bundle therefore names the program.
  const char* binary = std::getenv("LLOYDBENCH_BINARY");
  return file_fingerprint(binary == nullptr ? "/proc/self/exe" : binary).value_or("");
}

std::optional<std::string> file_fingerprint(const std::filesystem::path& file) {
  std::error_code absent;
  if (!std::filesystem::is_regular_file(file, absent)) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  std::vector<char> block(1 << 20);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0)
    XXH3_128bits_update(state, block.data(), static_cast<std::size_t>(in.gcount()));
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace lloyd
