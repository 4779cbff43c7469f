// Reads a file of rows: JSON lines, of which a crash may have torn the last one.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "experiments/process/plain_folder.h"
#include "experiments/record/rows.h"

namespace lloyd {

/// The row is valid JSON, but no run could have written it.
struct WrongRow : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What to do with a last line that has no newline. A run is writing it, or a crash has torn it.
enum class TornLine { refuse, skip };

/// Calls `visit` for each row in order, unless there is no such file. Throws RunDirectoryError with
/// file and line if a row is damaged, if it lacks a field that `visit` needs, or if `visit` throws
/// WrongRow.
void for_each_row(const PlainFolder& folder, const std::string& name,
                  const std::function<void(const Row&)>& visit, TornLine torn = TornLine::refuse);

/// Removes the last line if it is not JSON or has no newline. A crash of the machine may leave
/// zeros there. Throws RunDirectoryError if another line is not JSON.
void drop_torn_line(const PlainFolder& folder, const std::string& name);

}  // namespace lloyd
