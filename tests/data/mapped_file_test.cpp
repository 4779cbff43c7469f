// Another program changes a file while it is read.
#include "data/sources/mapped_file.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <numeric>

#include "testing.h"

namespace lloyd::data {
namespace {

class MappedFileTest : public FileTest {
 protected:
  /// Reads all of a file of 100,000 B after calling `change` on it.
  template <class Change>
  std::string error_after(const Change& change) {
    const Source source = write("a.csv", std::string(100'000, '1'));
    return error_of([&] {
      read_mapped(source.file, [&](std::string_view bytes) {
        change(source.file);
        sum_ = std::accumulate(bytes.begin(), bytes.end(), 0);
        return 0;
      });
    });
  }

  int sum_ = 0;
};

TEST_F(MappedFileTest, SaysThatItWasTruncated) {
  // Without a handler, access to the first byte of a lost page ends the process with SIGBUS.
  EXPECT_EQ(error_after([](const auto& file) { std::filesystem::resize_file(file, 5'000); }),
            "D/a.csv: was truncated while it was read: 100,000 B when it was opened, 5,000 B now; "
            "try again when no program writes to it");
  EXPECT_EQ(sum_, 5'000 * '1');
  EXPECT_EQ(error_after([](const auto& file) { std::filesystem::resize_file(file, 0); }),
            "D/a.csv: was truncated while it was read: 100,000 B when it was opened, 0 B now; try "
            "again when no program writes to it");
  EXPECT_EQ(sum_, 0);
}

TEST_F(MappedFileTest, SaysThatItWasExtendedOrWrittenTo) {
  EXPECT_EQ(error_after([](const auto& file) { std::filesystem::resize_file(file, 100'001); }),
            "D/a.csv: was extended while it was read: 100,000 B when it was opened, 100,001 B now; "
            "try again when no program writes to it");
  EXPECT_EQ(error_after([](const auto& file) {
              const auto before = std::filesystem::last_write_time(file);
              std::fstream(file, std::ios::in | std::ios::out) << "2";
              std::filesystem::last_write_time(file, before + std::chrono::seconds(1));
            }),
            "D/a.csv: was changed while it was read; try again when no program writes to it");
}

TEST_F(MappedFileTest, TheChangeComesBeforeWhatItMadeOfTheContent) {
  const Source source = write("a.csv", "1,2\n3,4\n");
  EXPECT_EQ(error_of([&] {
              read_mapped(source.file, [&](std::string_view) -> int {
                std::filesystem::resize_file(source.file, 3);
                throw DataError("'\\x00' is not a number");
              });
            }),
            "D/a.csv: was truncated while it was read: 8 B when it was opened, 3 B now; try again "
            "when no program writes to it");
}

TEST_F(MappedFileTest, OtherFilesThatAreOpenAreLeftAlone) {
  const Source other = write("b.csv", std::string(50'000, '2'));
  const MappedFile open(other.file);
  EXPECT_NE(error_after([](const auto& file) { std::filesystem::resize_file(file, 1); }),
            "no error");
  EXPECT_EQ(std::accumulate(open.bytes().begin(), open.bytes().end(), 0), 50'000 * '2');
  open.check_unchanged();
}

TEST_F(MappedFileTest, ASignalOfAnotherCauseStillEndsTheProcess) {
  const Source source = write("c.csv", std::string(10'000, '1'));
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process has no handler yet
  const auto raise_sigbus = [&] {
    std::signal(SIGBUS, SIG_DFL);  // AddressSanitizer's handler would exit with 1
    const MappedFile installs_the_handler(source.file);
    raise(SIGBUS);
  };
  EXPECT_EXIT(raise_sigbus(), testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace lloyd::data
