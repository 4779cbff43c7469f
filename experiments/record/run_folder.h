// Opens the folder of a run: says whether it is a run directory, whether a new run may use it, and
// locks it.
#pragma once

#include <filesystem>
#include <stdexcept>

#include "experiments/process/plain_folder.h"

namespace lloyd {

/// The folder cannot be used as requested. The exit status is 2.
struct RunDirectoryError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A run is writing into the folder.
struct RunDirectoryInUse : RunDirectoryError {
  using RunDirectoryError::RunDirectoryError;
};

/// Every function throws RunDirectoryError.
PlainFolder open_folder(const std::filesystem::path& path);
/// Returns the descriptor that holds the lock. Throws RunDirectoryInUse if another process has it.
int lock(const PlainFolder& folder);
/// Throws if the folder holds anything that a run which ended before writing its plan would not
/// leave behind.
void refuse_foreign(const std::filesystem::path& path);
/// Throws unless the folder has a plan. Throws NotPlain if a file of the run is not a plain file.
void check_run(const PlainFolder& folder);

}  // namespace lloyd
