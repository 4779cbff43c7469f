#include "experiments/process/process_tree.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace lloyd {
namespace {

/// Starts a daemon: its parent has ended, and it has its own session.
pid_t start_daemon() {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      const pid_t mine = getpid();
      if (write(pipe[1], &mine, sizeof mine) != sizeof mine) _exit(1);
      while (true) pause();
    }
    _exit(0);
  }
  pid_t daemon = -1;
  EXPECT_EQ(read(pipe[0], &daemon, sizeof daemon), static_cast<ssize_t>(sizeof daemon));
  close(pipe[0]);
  close(pipe[1]);
  return daemon;
}

TEST(ProcessTree, StraysEndAndOwnChildrenDoNot) {
  adopt_orphans();
  const pid_t mine = fork();
  if (mine == 0)
    while (true) pause();
  {
    const OwnChild spared(mine);
    const pid_t daemon = start_daemon();
    EXPECT_EQ(kill(daemon, 0), 0);
    EXPECT_TRUE(end_strays());
    EXPECT_EQ(kill(daemon, 0), -1);
    EXPECT_EQ(errno, ESRCH);
    EXPECT_FALSE(has_ended(mine));
  }
  EXPECT_TRUE(end_strays());
  EXPECT_EQ(waitpid(mine, nullptr, 0), -1);  // end_strays() has waited for it
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace lloyd
