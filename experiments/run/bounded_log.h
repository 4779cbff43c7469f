// log.txt: what workers and versions print, of which nobody knows how much it will be.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "experiments/process/child_process.h"

namespace lloyd {

/// Appends to a file what is written to descriptor(), by this process or others. Of each part (a point) it keeps the
/// beginning and the end, and says how much it left out between them; the beginnings of a whole run are bounded, too.
class BoundedLog {
 public:
  static constexpr std::int64_t kPartBytes = 1 << 20, kRunBytes = 64 << 20, kLastBytes = 16 << 10;

  /// Throws std::system_error when the file cannot be opened.
  explicit BoundedLog(const std::filesystem::path& file);
  BoundedLog(const BoundedLog&) = delete;
  /// Takes what has been written so far; does not wait for those who still hold the descriptor.
  ~BoundedLog();

  int descriptor() const { return pipe_.to.get(); }
  /// What has been written until now is a part; what follows is another one.
  void next_part();

 private:
  void pump();
  /// Takes what is in the pipe now.
  void drain();
  void take(const char* text, std::size_t bytes);
  void end_part();
  void write_out(const char* text, std::size_t bytes);

  Pipe pipe_;
  Descriptor file_, commands_, done_;  // eventfds: a part has ended, and that was taken note of
  std::atomic<bool> stop_ = false;
  std::int64_t part_room_ = kPartBytes, run_room_ = kRunBytes, left_out_ = 0;
  std::string last_;
  std::thread thread_;
};

}  // namespace lloyd
