#include "experiments/run/bounded_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "kernels/core/limits.h"

namespace lloyd {

BoundedLog::BoundedLog(const std::filesystem::path& file)
    : file_(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644)),
      commands_(eventfd(0, EFD_CLOEXEC)),
      done_(eventfd(0, EFD_CLOEXEC)) {
  if (file_.get() < 0 || commands_.get() < 0 || done_.get() < 0)
    throw std::system_error(errno, std::generic_category(), "cannot open " + file.string());
  fcntl(pipe_.from.get(), F_SETFL, O_NONBLOCK);
  fcntl(pipe_.from.get(), F_SETPIPE_SZ, 1 << 20);  // so that writers wait less
  thread_ = std::thread([this] { pump(); });
}

BoundedLog::~BoundedLog() {
  stop_ = true;
  next_part();
  thread_.join();
}

void BoundedLog::next_part() {
  std::uint64_t one = 1;
  while (write(commands_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  while (read(done_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void BoundedLog::pump() {
  while (true) {
    std::array<pollfd, 2> ready{{{pipe_.from.get(), POLLIN, 0}, {commands_.get(), POLLIN, 0}}};
    if (poll(ready.data(), ready.size(), -1) <= 0) continue;
    drain();
    if (ready[1].revents == 0) continue;
    std::uint64_t one = 0;
    if (read(commands_.get(), &one, sizeof one) < 0) continue;
    const bool last = stop_;
    drain();
    end_part();
    while (write(done_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    if (last) return;
  }
}

void BoundedLog::drain() {
  // As much as the pipe holds. A process that prints without end gets no more of a part.
  static constexpr int kBlocks = 16;
  std::array<char, 1 << 16> block{};
  for (int i = 0; i < kBlocks; ++i) {
    const ssize_t got = read(pipe_.from.get(), block.data(), block.size());
    if (got <= 0) return;
    take(block.data(), static_cast<std::size_t>(got));
  }
}

void BoundedLog::take(const char* text, std::size_t bytes) {
  const auto kept =
      static_cast<std::size_t>(std::min({static_cast<std::int64_t>(bytes), part_room_, run_room_}));
  write_out(text, kept);
  part_room_ -= static_cast<std::int64_t>(kept);
  run_room_ -= static_cast<std::int64_t>(kept);
  last_.append(text + kept, bytes - kept);
  if (last_.size() <= kLastBytes) return;
  left_out_ += static_cast<std::int64_t>(last_.size()) - kLastBytes;
  last_.erase(0, last_.size() - kLastBytes);
}

void BoundedLog::end_part() {
  if (left_out_ > 0) {
    const std::string said = fmt::format(
        "\n[{} B of output are left out here: {} B of a point and {} B of a run are kept]\n",
        with_commas(left_out_), with_commas(kPartBytes), with_commas(kRunBytes));
    write_out(said.data(), said.size());
  }
  write_out(last_.data(), last_.size());
  last_.clear();
  left_out_ = 0;
  part_room_ = kPartBytes;
}

void BoundedLog::write_out(const char* text, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t wrote = write(file_.get(), text, bytes);
    if (wrote < 0 && errno != EINTR) return;  // a full disk must not end a measurement
    if (wrote <= 0) continue;
    text += wrote;
    bytes -= static_cast<std::size_t>(wrote);
  }
}

}  // namespace lloyd
