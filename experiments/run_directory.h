// The folder that a run writes. Rows are appended and flushed as each point ends, so that whatever kills the run costs
// the point in flight and nothing else.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/rows.h"

namespace lloyd {

/// The folder cannot be used as asked: exit status 2.
struct RunDirectoryError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How far a point came, from its rows.
struct PointState {
  std::string status;
  std::size_t rows = 0;
  bool complete = false;  // as many rows as each of them says there are
};

class RunDirectory {
 public:
  /// Makes the folder with its parents and locks it. Throws RunDirectoryError when it holds anything already, cannot be written or
  /// another run has it.
  static RunDirectory create(const std::filesystem::path& path);
  /// Locks an existing one and drops a torn last line.
  static RunDirectory open(const std::filesystem::path& path);
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory(const RunDirectory&) = delete;
  ~RunDirectory();

  const std::filesystem::path& path() const { return path_; }
  /// Replaces a whole file at once: readers see the old one or the new one.
  void write(const std::string& name, const std::string& text);
  /// Appends rows as JSON lines in one piece and waits until they are on disk. On a full disk the file is cut back to
  /// what it held before and std::system_error is thrown.
  void append(const std::string& name, const std::vector<Row>& rows);
  std::vector<Row> read_rows(const std::string& name) const;
  /// By point id.
  std::map<std::string, PointState> states() const;
  /// The status of each profiling pass that ended, by point id and the pass's name.
  std::map<std::pair<std::string, std::string>, std::string> passes() const;
  /// Takes out every row of these points: times and profiles.
  void forget(const std::set<std::string>& points);
  /// Takes out the rows of these profiling passes (point id, name of the pass).
  void forget_passes(const std::set<std::pair<std::string, std::string>>& passes);

 private:
  RunDirectory(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  void remove_rows(const char* name, const std::function<bool(const Row&)>& unwanted);
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace lloyd
