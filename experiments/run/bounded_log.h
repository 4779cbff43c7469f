// Writes log.txt, which collects what workers and versions print. That may be any amount.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "experiments/process/child_process.h"

namespace lloyd {

/// Appends to a file what this process or others write to descriptor(). Keeps the beginning and the
/// end of each part (a point) and says how much it left out between them. The beginnings of all
/// parts of a run together are bounded, too.
class BoundedLog {
 public:
  static constexpr std::int64_t kPartBytes = 1 << 20, kRunBytes = 64 << 20, kLastBytes = 16 << 10;

  /// Throws std::system_error if the file cannot be opened.
  explicit BoundedLog(const std::filesystem::path& file);
  BoundedLog(const BoundedLog&) = delete;
  /// Takes what has been written so far. Does not wait for other holders of the descriptor.
  ~BoundedLog();

  int descriptor() const { return pipe_.to.get(); }
  /// Ends a part. Whatever is written from now on belongs to the next one.
  void next_part();

 private:
  void pump();
  /// Takes the current contents of the pipe.
  void drain();
  void take(const char* text, std::size_t bytes);
  void end_part();
  void write_out(const char* text, std::size_t bytes);

  Pipe pipe_;
  Descriptor file_, commands_, done_;  // eventfds: a part has ended, and the thread has seen it
  std::atomic<bool> stop_ = false;
  std::int64_t part_room_ = kPartBytes, run_room_ = kRunBytes, left_out_ = 0;
  std::string last_;
  std::thread thread_;
};

}  // namespace lloyd
