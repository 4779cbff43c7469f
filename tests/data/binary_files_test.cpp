#include <limits>

#include "testing.h"

namespace lloyd::data {
namespace {

class Npy : public FileTest {
 protected:
  void expect(const std::string& content, const Values& expected, std::int64_t n) {
    const Dataset data = read_file(write("a.npy", content));
    EXPECT_EQ(data.n(), n);
    EXPECT_EQ(values_of(data), expected);
  }
  std::string error(const std::string& content) { return read_error(write("a.npy", content)); }
};

TEST_F(Npy, ReadsEveryTypeVersionAndOrder) {
  const Values six = {1, 2, 3, 4, 5, 6};
  expect(npy("<f4", "(2, 3)", raw_all<float>({1, 2, 3, 4, 5, 6})), six, 2);
  expect(npy("<f4", "(2, 3)", raw_all<float>({1, 2, 3, 4, 5, 6}), false, 2), six, 2);
  expect(npy("<f4", "(2, 3)", raw_all<float>({1, 2, 3, 4, 5, 6}), false, 3), six, 2);
  expect(npy("<f4", "(2, 3)", raw_all<float>({1, 4, 2, 5, 3, 6}), true), six, 2);
  expect(npy(">f4", "(2, 3)", raw_all<float>({1, 2, 3, 4, 5, 6}, true)), six, 2);
  expect(npy("<f2", "(2, 3)",
             raw_all<std::uint16_t>({0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600})),
         six, 2);
  expect(npy(">f2", "(1, 3)", raw_all<std::uint16_t>({0x0001, 0xfbff, 0x8000}, true)),
         {0x1p-24f, -65504, -0.0f}, 1);
  expect(npy("<f8", "(3, 2)", raw_all<double>({1, 2, 3, 4, 5, 6})), six, 3);
  expect(npy(">f8", "(3, 2)", raw_all<double>({1, 2, 3, 4, 5, 6}, true)), six, 3);
  expect(npy("|i1", "(6,)", raw_all<std::int8_t>({1, 2, 3, 4, 5, 6})), six, 6);
  expect(npy("|u1", "(1, 2)", raw_all<std::uint8_t>({0, 255})), {0, 255}, 1);
  expect(npy("<i2", "(1, 2)", raw_all<std::int16_t>({-300, 7})), {-300, 7}, 1);
  expect(npy(">i2", "(1, 2)", raw_all<std::int16_t>({-300, 7}, true)), {-300, 7}, 1);
  expect(npy("<u2", "(1, 2)", raw_all<std::uint16_t>({65535, 7})), {65535, 7}, 1);
  expect(npy("<i4", "(1, 2)", raw_all<std::int32_t>({-70000, 7})), {-70000, 7}, 1);
  expect(npy("<u4", "(1, 2)", raw_all<std::uint32_t>({4000000000u, 7})), {4e9f, 7}, 1);
  expect(npy("<i8", "(1, 2)", raw_all<std::int64_t>({-(std::int64_t{1} << 40), 7})),
         {-1099511627776.0f, 7}, 1);
  // The value must be rounded only once. Rounding to double first would lose its last bit, and then
  // the float would be 2^60.
  expect(npy("<u8", "(1, 1)", raw_all<std::uint64_t>({(1ull << 60) + (1ull << 36) + 1})),
         {0x1.000002p60f}, 1);
}

TEST_F(Npy, ReadsManyRowsInBothOrders) {
  static constexpr int kRows = 40'000;  // more than two chunks
  std::string by_row, by_column;
  for (int i = 0; i < kRows * 2; ++i) by_row += raw(static_cast<float>(i));
  for (int j = 0; j < 2; ++j) {
    for (int i = 0; i < kRows; ++i) by_column += raw(static_cast<float>(2 * i + j));
  }
  const Dataset a = read_file(write("a.npy", npy("<f4", "(40000, 2)", by_row)), 2);
  const Dataset b = read_file(write("b.npy", npy("<f4", "(40000, 2)", by_column, true)), 3);
  for (std::size_t i = 0; i < a.values().size(); ++i)
    ASSERT_EQ(a.values()[i], static_cast<float>(i));
  EXPECT_EQ(values_of(a), values_of(b));
}

TEST_F(Npy, LoadTakesTheFirstRowsAndColumns) {
  const Source c = write("c.npy", npy("<f4", "(2, 3)", raw_all<float>({1, 2, 3, 4, 5, 6})));
  const Source f = write("f.npy", npy("<f4", "(2, 3)", raw_all<float>({1, 4, 2, 5, 3, 6}), true));
  EXPECT_EQ(values_of(load(c, 2, 2)), (Values{1, 2, 4, 5}));
  EXPECT_EQ(values_of(load(f, 2, 2)), (Values{1, 2, 4, 5}));
  EXPECT_EQ(error_of([&] { load(c, 3, 2); }), "D/c.npy: has 2 rows, but n = 3 was asked for");
}

TEST_F(Npy, RefusesATruncatedFile) {
  const std::string whole = npy("<f4", "(2, 3)", raw_all<float>({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(error(whole.substr(0, whole.size() - 5)),
            "D/a.npy: is truncated: 2 × 3 values of '<f4' take 24 B, and 19 B follow the header");
  EXPECT_EQ(error(whole + "x"),
            "D/a.npy: has bytes after its array: 2 × 3 values of '<f4' take 24 B, and 25 B follow "
            "the header");
  EXPECT_EQ(error(whole.substr(0, 8)),
            "D/a.npy: is truncated: the npy header takes 10 B, the file has 8 B");
  EXPECT_EQ(error(whole.substr(0, 40)),
            "D/a.npy: is truncated: the npy header takes 128 B, the file has 40 B");
  EXPECT_EQ(error(npy("<f8", "(9000000000000000000, 9)", "")),
            "D/a.npy: is truncated: 9,000,000,000,000,000,000 × 9 values of '<f8' take more than a "
            "file can "
            "hold, and 0 B follow the header");
}

TEST_F(Npy, RefusesAWrongShapeOrType) {
  EXPECT_EQ(error(npy("<f4", "(1, 2, 3)", raw_all<float>({1, 2, 3, 4, 5, 6}))),
            "D/a.npy: shape (1, 2, 3) is not n × dim; save a 2-D array");
  EXPECT_EQ(error(npy("<f4", "()", raw_all<float>({1}))),
            "D/a.npy: shape () is not n × dim; save a 2-D array");
  EXPECT_EQ(error(npy("<f4", "(0, 3)", "")), "D/a.npy: holds no values (shape 0 × 3)");
  EXPECT_EQ(error(npy("<c8", "(1, 1)", raw_all<float>({1, 2}))),
            "D/a.npy: dtype '<c8' cannot be read; save it with astype('float32')");
  EXPECT_EQ(error(npy("|O", "(1, 1)", "12345678")),
            "D/a.npy: dtype '|O' cannot be read; save it with astype('float32')");
  std::string records = npy("<f4", "(1, 1)", "1234");
  records.replace(records.find("'<f4'"), 5, "[('x'");
  EXPECT_EQ(error(records), "D/a.npy: holds records; save a plain 2-D array of numbers");
}

TEST_F(Npy, RefusesADamagedHeader) {
  EXPECT_EQ(error("NUMPY"), "D/a.npy: is not an npy file (its first bytes are 'NUMPY')");
  std::string file = npy("<f4", "(1, 1)", "1234");
  file[6] = 9;
  EXPECT_EQ(error(file), "D/a.npy: npy version 9.0 is not known; versions 1.0, 2.0 and 3.0 are");
  file[6] = 1;
  file[7] = 4;
  EXPECT_EQ(error(file), "D/a.npy: npy version 1.4 is not known; versions 1.0, 2.0 and 3.0 are");
  EXPECT_EQ(error(npy("<f4", "(1, x)", "1234")).substr(0, 50),
            "D/a.npy: the npy header is damaged near 'x), }    ");
  EXPECT_EQ(error(npy("<f4", "(-1, 1)", "1234")).substr(0, 46),
            "D/a.npy: the npy header is damaged near '-1, 1");
  file = npy("<f4", "(1, 1)", "1234");
  file.replace(file.find("shape"), 5, "shade");
  EXPECT_EQ(error(file).substr(0, 39), "D/a.npy: the npy header is damaged near");
  for (const char* shape : {"(1, 01)", "(1)", "(1, 1)}", "(1, 1), } 1", "(1, 1), }\x88"})
    EXPECT_EQ(error(npy("<f4", shape, "1234")).substr(0, 39),
              "D/a.npy: the npy header is damaged near")
        << shape;
  EXPECT_EQ(error(npy("<f4", "(1, 1", "1234")).substr(0, 39),
            "D/a.npy: the npy header is damaged near");
}

TEST_F(Npy, RefusesNanInfinityAndNumbersBeyondFloat) {
  const double infinity = std::numeric_limits<double>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(
      error(npy("<f4", "(2, 2)", raw_all<float>({1, 2, 3, nan}))),
      "D/a.npy: row 2, column 2: nan is not a finite number; remove the row or replace the value");
  EXPECT_EQ(
      error(npy("<f8", "(1, 2)", raw_all<double>({1, -infinity}))),
      "D/a.npy: row 1, column 2: -inf is not a finite number; remove the row or replace the value");
  EXPECT_EQ(error(npy("<f8", "(2, 1)", raw_all<double>({1, 1e99}))),
            "D/a.npy: row 2, column 1: 1e+99 is beyond the largest float, 3.402823e+38");
}

TEST_F(Npy, RefusesKeysOfTextFiles) {
  Source source = write("a.npy", npy("<f4", "(1, 1)", "1234"));
  source.index_column = 0;
  EXPECT_EQ(read_error(source), "D/a.npy: index_column is for text files, and this is npy");
  source.header = true;
  EXPECT_EQ(read_error(source), "D/a.npy: header is for text files, and this is npy");
}

class Fvecs : public FileTest {
 protected:
  static std::string row(std::int32_t length, std::initializer_list<float> values) {
    return raw(length) + raw_all(values);
  }
  std::string error(const std::string& content) { return read_error(write("a.fvecs", content)); }
};

TEST_F(Fvecs, ReadsRows) {
  const Source source = write("a.fvecs", row(3, {1, 2, 3}) + row(3, {4, 5, 6}));
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values_of(load(source, 1, 2)), (Values{1, 2}));
  EXPECT_EQ(error_of([&] { load(source, 1, 4); }),
            "D/a.fvecs: has 3 columns of numbers, but dim = 4 was asked for");
}

TEST_F(Fvecs, RefusesADamagedFile) {
  EXPECT_EQ(error("ab"), "D/a.fvecs: is truncated: 2 B are less than the length of one row");
  EXPECT_EQ(error(row(0, {})),
            "D/a.fvecs: row 1 says that it has 0 values; is this an fvecs file? If not, set "
            "the key format");
  EXPECT_EQ(error(row(-5, {1})),
            "D/a.fvecs: row 1 says that it has -5 values; is this an fvecs file? If not, set "
            "the key format");
  EXPECT_EQ(error(row(2, {1, 2}) + row(2, {3})),
            "D/a.fvecs: is truncated: row 2 of 2 values takes 12 B, and 8 B are there");
  EXPECT_EQ(error(row(2, {1})),
            "D/a.fvecs: is truncated: row 1 of 2 values takes 12 B, and 8 B are there");
  EXPECT_EQ(error(row(2, {1, 2}) + row(3, {1, 2, 3}) + row(2, {1, 2})),
            "D/a.fvecs: row 2 says that it has 3 values; the first row has 2");
  EXPECT_EQ(error(row(2, {1, std::numeric_limits<float>::infinity()})),
            "D/a.fvecs: row 1, column 2: inf is not a finite number; remove the row or replace the "
            "value");
}

class Bvecs : public FileTest {
 protected:
  static std::string row(std::int32_t length, std::initializer_list<std::uint8_t> values) {
    return raw(length) + raw_all(values);
  }
  std::string error(const std::string& content) { return read_error(write("a.bvecs", content)); }
};

TEST_F(Bvecs, ReadsRows) {
  const std::string content = row(3, {0, 128, 255}) + row(3, {4, 5, 6});
  const Source source = write("a.bvecs", content);
  EXPECT_EQ(values_of(read_file(source)), (Values{0, 128, 255, 4, 5, 6}));
  EXPECT_EQ(values_of(load(source, 2, 1)), (Values{0, 4}));
  Source renamed = write("a.bin", content);
  renamed.format = "bvecs";
  EXPECT_EQ(values_of(read_file(renamed)), values_of(read_file(source)));
  EXPECT_EQ(fingerprint(renamed), fingerprint(source));
}

TEST_F(Bvecs, RefusesADamagedFile) {
  EXPECT_EQ(error("abc"), "D/a.bvecs: is truncated: 3 B are less than the length of one row");
  EXPECT_EQ(error(row(-1, {1})),
            "D/a.bvecs: row 1 says that it has -1 values; is this a bvecs file? If not, set the "
            "key format");
  EXPECT_EQ(error(row(3, {1, 2, 3}) + row(3, {4, 5})),
            "D/a.bvecs: is truncated: row 2 of 3 values takes 7 B, and 6 B are there");
  EXPECT_EQ(error(row(2, {1, 2}) + row(3, {1, 2, 3})),
            "D/a.bvecs: row 2 says that it has 3 values; the first row has 2");
  // An fvecs file under the wrong name: the next length would be in the middle of a float.
  EXPECT_EQ(error(raw(2) + raw_all<float>({1, 2}) + raw(2) + raw_all<float>({3, 4})),
            "D/a.bvecs: row 2 says that it has 16,256 values; the first row has 2");
  Source source = write("a.bvecs", row(1, {1}));
  source.delimiter = ';';
  EXPECT_EQ(read_error(source), "D/a.bvecs: delimiter is for text files, and this is bvecs");
}

class Ivecs : public FileTest {};

TEST_F(Ivecs, ReadsRowsAndRoundsOnce) {
  const Source source =
      write("a.ivecs", raw(2) + raw_all<std::int32_t>({-2147483647 - 1, 16777217}));
  EXPECT_EQ(values_of(read_file(source)), (Values{-2147483648.0F, 16777216.0F}));
}

TEST_F(Ivecs, RefusesADamagedFile) {
  EXPECT_EQ(read_error(write("a.ivecs", raw(2) + raw(7))),
            "D/a.ivecs: is truncated: row 1 of 2 values takes 12 B, and 8 B are there");
}

}  // namespace
}  // namespace lloyd::data
