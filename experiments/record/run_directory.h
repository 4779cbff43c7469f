// The folder that a run writes. Rows are appended and flushed one sample at a time, so that whatever kills the run costs
// the sample in flight and nothing else.
//
// A point has samples, all ok, or one row that says why it has none. Which of its launches are finished is said in
// passes.jsonl, by a row that is written after the launch's last sample.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/measure/noise.h"
#include "experiments/process/plain_folder.h"
#include "experiments/record/rows.h"

namespace lloyd {

/// The folder cannot be used as asked: exit status 2.
struct RunDirectoryError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A sample that is in the rows.
struct TakenSample {
  double solve_ms = 0;
  SampleNoise noise;
};
TakenSample taken_sample(const Row& row);

/// How far a point came, from its rows.
struct PointState {
  std::string status;  // of all its rows; empty where it has none in measurements.jsonl
  std::map<int, std::vector<TakenSample>> samples;  // by launch
  std::set<int> finished;                           // launches
};

class RunDirectory {
 public:
  /// Makes the folder with its parents and locks it. One that holds nothing but what a run left that died before its
  /// plan was written is made anew. Throws RunDirectoryError when it holds anything else, cannot be written or another
  /// run has it.
  static RunDirectory create(const std::filesystem::path& path);
  /// Locks an existing one and takes away what a run that died left in the making: torn last lines, files under their
  /// temporary names. Throws RunDirectoryError when it has no plan, another run has it, or one of its files is no
  /// plain file.
  static RunDirectory open(const std::filesystem::path& path);
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory(const RunDirectory&) = delete;
  ~RunDirectory();

  const std::filesystem::path& path() const { return folder_.path(); }
  /// Replaces a whole file at once: readers see the old one or the new one.
  void write(const std::string& name, const std::string& text);
  void write(const std::string& name, const std::function<void(std::ostream&)>& fill);
  /// Appends rows as JSON lines in one piece and waits until they are on disk. On a full disk the file is cut back to
  /// what it held before and std::system_error is thrown.
  void append(const std::string& name, const std::vector<Row>& rows);
  /// A whole file as JSON. Throws RunDirectoryError when it is not that.
  nlohmann::json read_json(const std::string& name) const;
  /// What plan.json of the run in `path` says, without its points, of which there may be a million. Locks and changes
  /// nothing; throws as open() does.
  static nlohmann::json plan_of(const std::filesystem::path& path);
  /// Calls `visit` for each row in order. Throws RunDirectoryError that names file and line of a row that is damaged or
  /// lacks what `visit` asks of it.
  void for_each_row(const std::string& name, const std::function<void(const Row&)>& visit) const;
  std::vector<Row> read_rows(const std::string& name) const;
  /// By point id.
  std::map<std::string, PointState> states() const;
  /// The status of each profiling pass (not of timing) that ended, by point id and the pass's name.
  std::map<std::pair<std::string, std::string>, std::string> passes() const;
  /// Puts what the energy passes found into the samples' rows.
  void fill_energy();
  /// Takes out every row of these points: times and profiles.
  void forget(const std::set<std::string>& points);
  /// Takes out the rows of these profiling passes (point id, name of the pass).
  void forget_passes(const std::set<std::pair<std::string, std::string>>& passes);

 private:
  RunDirectory(PlainFolder folder, int lock) : folder_(std::move(folder)), lock_(lock) {}
  void remove_rows(const char* name, const std::function<bool(const Row&)>& unwanted);
  void drop_torn_line(const char* name) const;
  PlainFolder folder_;
  int lock_ = -1;
};

}  // namespace lloyd
