#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "profiling/doctor_checks.h"
#include "profiling/program.h"

namespace lloyd::profiling {
namespace {

namespace fs = std::filesystem;

// The first line with a digit that `command` prints and that contains `word`. nullopt if the
// command fails.
std::optional<std::string> version_line(const std::vector<std::string>& command,
                                        const char* word = "") {
  const auto text = output_of(command);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);)
    if (line.find_first_of("0123456789") != std::string::npos &&
        line.find(word) != std::string::npos && line.find("Copyright") == std::string::npos)
      return line;
  return text->empty() ? std::nullopt : text;
}

// Looks for the tool in each of `programs`. `word` occurs in the line that has the version.
Check tool(const char* name, const std::vector<std::string>& programs, const char* word,
           const std::string& remedy) {
  for (const std::string& program : programs)
    if (const auto version = version_line({program, "--version"}, word))
      return {name, Health::ok, *version, ""};
  return {name, Health::missing, "not found", remedy};
}

// Asks the interpreter that external versions run under: the one that LLOYDBENCH_PYTHON names, or
// else the virtual environment of the tree, or else the python3 on PATH.
Check python(const fs::path& home) {
  const fs::path own = home / ".venv" / "bin" / "python";
  const char* named = std::getenv("LLOYDBENCH_PYTHON");
  const std::string interpreter = named != nullptr  ? named
                                  : fs::exists(own) ? own.string()
                                                    : "python3";
  const std::string ask =
      "import importlib.util as u; print(' '.join(m for m in "
      "('numpy','pandas','scipy','matplotlib','jinja2','msgspec') "
      "if u.find_spec(m) is None) or '0 absent')";
  const auto answer = version_line({interpreter, "-c", ask});
  if (!answer && named != nullptr)
    return {"python", Health::missing,
            fmt::format("{}, which LLOYDBENCH_PYTHON names, does not run", interpreter),
            "name a Python 3.10 or newer in LLOYDBENCH_PYTHON, or unset it"};
  if (!answer)
    return {"python", Health::missing, "no python3", "figures need Python 3.10 or newer"};
  if (answer->rfind("0 absent", 0) == 0)
    return {"python", Health::ok, interpreter + " has all that the figures need", ""};
  std::string absent = *answer;
  absent.erase(absent.find_last_not_of('\n') + 1);
  return {"python", Health::missing, fmt::format("{} lacks {}", interpreter, absent),
          "figures need them: pip install -r requirements.txt, or make run"};
}

}  // namespace

Check compiler_check() {
  return tool("nvcc", {"nvcc", "/usr/local/cuda/bin/nvcc"}, "release",
              "needed only to build; `make` installs it into .venv if none is found");
}

std::vector<Check> tool_checks(const fs::path& home) {
  return {
      tool("valgrind", {"valgrind"}, "",
           "profile.cpu: [cachegrind] needs it, to build and to run: apt-get install valgrind"),
      tool("mpi", {"mpirun"}, "", "cpu_mpi needs it: apt-get install openmpi-bin libopenmpi-dev"),
      tool("nsys", {"nsys"}, "",
           "--nsys needs Nsight Systems: developer.nvidia.com/nsight-systems"),
      tool("ncu", {"ncu"}, "Version",
           "--ncu needs Nsight Compute: developer.nvidia.com/nsight-compute"),
      python(home)};
}

}  // namespace lloyd::profiling
