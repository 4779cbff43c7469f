// Points that stay in their file.
#include "data/sources/file_rows.h"

#include <sys/resource.h>

#include <numeric>

#include "kernels/core/halves.h"
#include "testing.h"

namespace lloyd::data {
namespace {

class FileRowsTest : public FileTest {
 protected:
  static constexpr int kRows = 7, kColumns = 5;

  FileRowsTest() {
    for (int i = 0; i < kRows * kColumns; ++i) values_.push_back(static_cast<float>(i * i) / 8);
  }

  template <typename T, typename Convert>
  std::string values(const Convert& convert, bool with_lengths = false) const {
    std::string bytes;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (with_lengths && i % kColumns == 0) bytes += raw(std::int32_t{kColumns});
      bytes += raw(static_cast<T>(convert(values_[i])));
    }
    return bytes;
  }

  // The same values in files of all kinds.
  std::vector<Source> files() const {
    const auto half = [](float x) { return fp16_bits(rounded_to_fp16(x)); };
    const auto same = [](float x) { return x; };
    return {write("f2.npy", npy("<f2", "(7, 5)", values<std::uint16_t>(half))),
            write("f4.npy", npy("<f4", "(7, 5)", values<float>(same))),
            write("u1.npy", npy("|u1", "(7, 5)", values<std::uint8_t>(same))),
            write("a.fvecs", values<float>(same, true)),
            write("a.bvecs", values<std::uint8_t>(same, true))};
  }

  static float rounded(float x, Precision precision) {
    return precision == Precision::fp16   ? rounded_to_fp16(x)
           : precision == Precision::bf16 ? rounded_to_bf16(x)
                                          : x;
  }

  std::string rows_error(const Source& source) const {
    return error_of([&] {
      FileRows(source, 0, 0, Precision::fp32).check([](std::int64_t, std::span<float>) {});
    });
  }

  std::vector<float> values_;
};

TEST_F(FileRowsTest, HaveTheValuesThatLoadingGives) {
  for (const Source& source : files())
    for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16})
      for (const int dim : {5, 3}) {
        SCOPED_TRACE(source.file.filename().string() + " " + std::string(to_string(precision)) +
                     " " + std::to_string(dim));
        const FileRows rows(source, 6, dim, precision);
        EXPECT_EQ(rows.n(), 6);
        EXPECT_EQ(rows.dim(), dim);
        Values expected = values_of(load(source, 6, dim));
        for (float& x : expected) x = rounded(x, precision);
        // Reads may begin and end within a row.
        for (const std::size_t first : {0, 1, 4, 7, 17})
          for (const std::size_t count : {1, 2, 9, 13}) {
            if (first + count > expected.size()) continue;
            const auto wanted = std::span(expected).subspan(first, count);
            Values floats(count);
            rows.read(static_cast<std::int64_t>(first), floats);
            EXPECT_TRUE(std::ranges::equal(floats, wanted)) << first << " " << count;
            if (precision == Precision::fp32) continue;
            std::vector<std::uint16_t> halves(count);
            rows.read(static_cast<std::int64_t>(first), halves);
            for (std::size_t i = 0; i < count; ++i)
              EXPECT_EQ(halves[i],
                        precision == Precision::fp16 ? fp16_bits(wanted[i]) : bf16_bits(wanted[i]));
          }
      }
}

TEST_F(FileRowsTest, LendWhatLiesThereAsFloats) {
  for (const Source& source : files()) {
    const bool lies = source.file.filename() == "f4.npy";
    EXPECT_EQ(lies_in_place(source, kColumns), lies) << source.file;
    EXPECT_FALSE(lies_in_place(source, kColumns - 1)) << source.file;
    const FileRows rows(source, 3, kColumns, Precision::fp32);
    if (lies) {
      EXPECT_TRUE(std::ranges::equal(rows.in_place(), std::span(values_).first(3 * kColumns)));
    }
  }
}

TEST_F(FileRowsTest, CheckEveryRowOnce) {
  for (const Source& source : files()) {
    Values seen;
    FileRows(source, 6, 4, Precision::fp16).check([&](std::int64_t first, std::span<float> part) {
      EXPECT_EQ(first * 4, std::ssize(seen));
      seen.insert(seen.end(), part.begin(), part.end());
    });
    EXPECT_EQ(seen, values_of(load(source, 6, 4))) << source.file;
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(rows_error(write("nan.npy", npy("<f4", "(2, 2)", raw_all<float>({1, 2, 3, nan})))),
            "D/nan.npy: row 2, column 2: nan is not a finite number; remove the row or replace the "
            "value");
  EXPECT_EQ(rows_error(write("b.fvecs", raw(1) + raw(1.0f) + raw(2) + raw(2.0f))),
            "D/b.fvecs: row 2 says that it has 2 values; the first row has 1");
}

TEST_F(FileRowsTest, SayWhichFilesTheyNeed) {
  EXPECT_EQ(rows_error(write("a.csv", "1,2\n")),
            "D/a.csv: mapped: true is for npy, fvecs and bvecs, and this is csv; leave mapped out");
  const std::string values = raw_all<double>({1, 2});
  const std::string remedy =
      "mapped: true needs '<f2', '<f4' or '|u1' in C order; leave mapped out, or convert the file: "
      "python -c \"import numpy as np; a = np.load('D/a.npy', mmap_mode='r'); "
      "np.lib.format.open_memmap('new.npy', 'w+', '<f4', a.shape)[:] = a\"";
  const auto error = [&](const std::string& content) {
    std::string text = rows_error(write("a.npy", content));
    const std::size_t again = text.find(folder_.string());
    return again == std::string::npos ? text : text.replace(again, folder_.string().size(), "D");
  };
  EXPECT_EQ(error(npy("<f8", "(1, 2)", values)), "D/a.npy: holds '<f8' in C order, and " + remedy);
  EXPECT_EQ(error(npy("<f4", "(2, 2)", values, true)),
            "D/a.npy: holds '<f4' in Fortran order, and " + remedy);
  EXPECT_EQ(error(npy("<f4", "(3, 2)", values)),
            "D/a.npy: is truncated: 3 × 2 values of '<f4' take 24 B, and 16 B follow the header");
  EXPECT_EQ(rows_error(write("b.fvecs", raw(2) + raw(1.0f))),
            "D/b.fvecs: is truncated: row 1 of 2 values takes 12 B, and 8 B are there");
  const Source good = write("c.npy", npy("<f4", "(1, 2)", raw_all<float>({1, 2})));
  EXPECT_EQ(error_of([&] { FileRows(good, 2, 2, Precision::fp32); }),
            "D/c.npy: has 1 rows, but n = 2 was asked for");
  Source with_header = good;
  with_header.header = true;
  EXPECT_EQ(rows_error(with_header), "D/c.npy: header is for text files, and this is npy");
}

TEST_F(FileRowsTest, SayThatTheFileHasChanged) {
  const Source source = write("a.npy", npy("<f4", "(1, 2)", raw_all<float>({1, 2})));
  const FileRows rows(source, 0, 0, Precision::fp32);
  rows.check_unchanged();
  std::filesystem::resize_file(source.file, 100);
  EXPECT_EQ(error_of([&] { rows.check_unchanged(); }).substr(0, 44),
            "D/a.npy: was truncated while it was read: 13");
}

// A file of zeros that takes no space on disk, of 256 MiB, whose floats would take 512 MiB.
TEST_F(FileRowsTest, NeedLittleMemoryForALargeFile) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer maps more memory for itself than the test allows";
#endif
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  constexpr std::int64_t kMany = 1 << 20;
  const Source source = write("large.npy", npy("<f2", "(1048576, 128)", ""));
  const auto head = std::filesystem::file_size(source.file);
  std::filesystem::resize_file(source.file, head + kMany * 128 * 2);
  const auto limit_data = [] {
    const rlimit limit{192 << 20, 192 << 20};
    setrlimit(RLIMIT_DATA, &limit);
  };
  EXPECT_EXIT(
      {
        limit_data();
        const FileRows rows(source, 0, 0, Precision::fp16);
        std::int64_t seen = 0;
        rows.check([&](std::int64_t, std::span<float> values) { seen += std::ssize(values); });
        std::_Exit(seen == kMany * 128 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        limit_data();
        std::cerr << error_of([&] { read_file(source, 1); });
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "which the system refused to give");
}

}  // namespace
}  // namespace lloyd::data
