// The folder that a run writes. Rows are appended and flushed one sample at a time, so whatever
// kills the run costs only the sample in progress.
//
// A point has either samples, all ok, or one row that says why it has none. passes.jsonl records
// which of its turns are finished: it gets a row after the last sample of a launch or restart.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/process/plain_folder.h"
#include "experiments/record/point_noise.h"
#include "experiments/record/rows.h"
#include "experiments/record/run_folder.h"

namespace lloyd {

/// A sample that already has a row.
struct TakenSample {
  double solve_ms = 0;
  std::optional<double> inertia;
  SampleNoise noise;
};
TakenSample taken_sample(const Row& row);
/// The turn of a row of measurements.jsonl or of a timing pass. Throws WrongRow.
Turn turn_of(const Row& row);

/// The progress of a point, according to its rows.
struct PointState {
  // The status of all its rows. Empty if it has none in measurements.jsonl.
  std::string status;
  std::string place, gpu;  // where the last of them was measured: see place_of, first_gpu_of
  std::map<Turn, std::vector<TakenSample>> samples;
  std::set<Turn> finished;
};

class RunDirectory {
 public:
  /// Makes the folder with its parents and locks it. If it holds only the files of a run that died
  /// before it wrote its plan, they are replaced. Throws RunDirectoryError if it holds anything
  /// else, is not writable, or another run uses it.
  static RunDirectory create(const std::filesystem::path& path);
  /// Locks an existing folder and removes what a run that died left unfinished: torn last lines and
  /// temporary files. Throws RunDirectoryError if it has no plan, if another run uses it, or if one
  /// of its files is not a plain file.
  static RunDirectory open(const std::filesystem::path& path);
  /// For reading only: neither locks nor changes anything, so the run may be going on. Torn last
  /// lines do not count as rows. Throws as open() does.
  static RunDirectory view(const std::filesystem::path& path);
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory(const RunDirectory&) = delete;
  ~RunDirectory();

  const std::filesystem::path& path() const { return folder_.path(); }
  /// Replaces a whole file atomically: readers see either the old or the new file.
  void write(const std::string& name, const std::string& text);
  void write(const std::string& name, const std::function<void(std::ostream&)>& fill);
  /// Appends rows as JSON lines in one piece and waits until they are on disk. If the disk is full,
  /// cuts the file back to its previous content and throws std::system_error.
  void append(const std::string& name, const std::vector<Row>& rows);
  /// Reads a whole file as JSON. Throws RunDirectoryError if that fails.
  nlohmann::json read_json(const std::string& name) const;
  /// Reads plan.json of the run in `path` without its points, because there may be a million of
  /// them. Neither locks nor changes anything. Throws as open() does.
  static nlohmann::json plan_of(const std::filesystem::path& path);
  /// Calls `visit` for each row in order. Throws RunDirectoryError with file and line if a row is
  /// damaged or lacks a field that `visit` needs.
  void for_each_row(const std::string& name, const std::function<void(const Row&)>& visit) const;
  std::vector<Row> read_rows(const std::string& name) const;
  /// The states of all points, by point id.
  std::map<std::string, PointState> states() const;
  /// The status of each profiling pass (timing excluded) that ended, by point id and the name of
  /// the pass.
  std::map<std::pair<std::string, std::string>, std::string> passes() const;
  /// Copies the results of the energy passes into the rows of the samples.
  void fill_energy();
  /// Removes every row of these points, both times and profiles, and their saved answers.
  void forget(const std::set<std::string>& points);
  /// Removes the rows of these profiling passes (point id, name of the pass).
  void forget_passes(const std::set<std::pair<std::string, std::string>>& passes);

 private:
  RunDirectory(PlainFolder folder, int lock) : folder_(std::move(folder)), lock_(lock) {}
  void remove_rows(const char* name, const std::function<bool(const Row&)>& unwanted);
  PlainFolder folder_;
  int lock_ = -1;  // -1: only read
};

}  // namespace lloyd
