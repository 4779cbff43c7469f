// Hands the parts of a sweep to a cluster's scheduler.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/spec/spec.h"

namespace lloyd {

/// The sweep cannot be submitted as requested. The exit status is 2.
struct NotSubmitted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The files of a submission, in the folder of the parts: the script of the job, and what
/// submission_of() reads (part_folders.h).
inline constexpr const char *kJobScript = "job.sh", *kSubmission = "submit.json";
/// The log of a part's tasks, in the same folder. `part`: its number, or Slurm's %a, which stands
/// for it.
std::string part_log(const std::string& part);

/// The line of a part's log with which each task begins starts like this.
inline constexpr std::string_view kTaskBegins = "job.sh: part ";

struct Submission {
  std::filesystem::path out;         // the folder of the parts; empty: as of a run
  std::filesystem::path head;        // a file with #SBATCH lines; empty: none
  std::vector<std::string> options;  // of the run: each part gets them
  bool json = false;
};

/// Writes an array job with a task for each part into a new folder, and submits it to Slurm. The
/// head's --array says how many parts there are; otherwise each problem is one. A task that is
/// requeued goes on with its part. Throws NotSubmitted and RunDirectoryError. If sbatch fails, the
/// folder is removed; where there is no sbatch, it is kept to be submitted by hand.
int submit_to_slurm(const Spec& spec, const Submission& submission);

}  // namespace lloyd
