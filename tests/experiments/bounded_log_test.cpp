#include "experiments/run/bounded_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace lloyd {
namespace {

class BoundedLogTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(file_).rdbuf();
    return all.str();
  }
  std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / fmt::format("bounded_log_{}", getpid());
};

TEST_F(BoundedLogTest, KeepsWhatIsShort) {
  {
    BoundedLog log(file_);
    dprintf(log.descriptor(), "one\n");
    log.next_part();
    dprintf(log.descriptor(), "two\n");
  }
  { dprintf(BoundedLog(file_).descriptor(), "three\n"); }  // a resumed run
  EXPECT_EQ(text(), "one\ntwo\nthree\n");
}

TEST_F(BoundedLogTest, KeepsBeginningAndEndOfAFlood) {
  {
    BoundedLog log(file_);
    for (int line = 0; line < 40'000; ++line) dprintf(log.descriptor(), "%099d\n", line);
    log.next_part();
    dprintf(log.descriptor(), "the next point\n");
  }
  const std::string kept = text();
  const std::string said = fmt::format(
      "\n[{} B of output are left out here: 1,048,576 B of a point and 67,108,864 B of a run are "
      "kept]\n",
      "2,935,040");
  const std::size_t at = kept.find(said);
  ASSERT_NE(at, std::string::npos) << kept.substr(BoundedLog::kPartBytes, 200);
  EXPECT_EQ(at, static_cast<std::size_t>(BoundedLog::kPartBytes));
  EXPECT_EQ(kept.substr(0, 100), fmt::format("{:099}\n", 0));
  EXPECT_EQ(kept.substr(at + said.size() + BoundedLog::kLastBytes), "the next point\n");
  EXPECT_NE(kept.find(fmt::format("{:099}\nthe next point\n", 39'999)), std::string::npos);
}

TEST_F(BoundedLogTest, FollowsNoLink) {
  std::filesystem::create_symlink("/dev/null", file_);
  EXPECT_THROW(BoundedLog log(file_), std::system_error);
}

}  // namespace
}  // namespace lloyd
