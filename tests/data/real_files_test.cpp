// Tests the inputs of the University of Valladolid's assignment and of STAMP's kmeans. The project
// does not contain these files.
#include <cstdlib>

#include "testing.h"

namespace lloyd::data {
namespace {

class RealFiles : public testing::Test {
 protected:
  /// Returns an empty source if the file is absent.
  static Source find(const std::string& name) {
    const char* const folder = std::getenv("LLOYD_REAL_DATA");
    const std::filesystem::path root =
        folder ? std::filesystem::path(folder)
               : std::filesystem::path(LLOYD_SOURCE_DIR) / "../shared/data";
    Source source;
    if (std::filesystem::exists(root / name)) source.file = root / name;
    return source;
  }
};

#define SKIP_WITHOUT(source, name) \
  if (source.file.empty())         \
  GTEST_SKIP() << name << " is not here; set LLOYD_REAL_DATA to the folder that has it"

TEST_F(RealFiles, Valladolid) {
  for (const auto& [name, dim] : {std::pair{"uva/input20D.inp", 20}, {"uva/input100D.inp", 100}}) {
    const Source source = find(name);
    SKIP_WITHOUT(source, name);
    const Dataset data = read_file(source);
    EXPECT_EQ(data.n(), 10'000);
    ASSERT_EQ(data.dim(), dim);
    EXPECT_EQ(data.values()[0], -81);
    EXPECT_EQ(data.values()[1], 0);
    EXPECT_EQ(data.values()[2], 47);
    for (const float value : data.values()) {
      ASSERT_EQ(value, static_cast<int>(value));
      ASSERT_GE(value, -100);
      ASSERT_LE(value, 100);
    }
  }
}

TEST_F(RealFiles, Stamp) {
  const char* const name = "stamp/random-n2048-d16-c16.txt";
  Source source = find(name);
  SKIP_WITHOUT(source, name);
  EXPECT_EQ(read_file(source).dim(), 17);
  source.index_column = 0;
  const Dataset data = read_file(source);
  EXPECT_EQ(data.n(), 2048);
  ASSERT_EQ(data.dim(), 16);
  EXPECT_EQ(data.values()[0], 0.352118266675f);
  for (const float value : data.values()) {
    ASSERT_GT(value, -0.5f);
    ASSERT_LT(value, 1.5f);
  }
}

TEST_F(RealFiles, StampLarger) {
  const char* const name = "stamp/random-n16384-d24-c16.txt";
  Source source = find(name);
  SKIP_WITHOUT(source, name);
  source.index_column = 0;
  const Dataset data = read_file(source);
  EXPECT_EQ(data.n(), 16'384);
  ASSERT_EQ(data.dim(), 24);
  EXPECT_EQ(data.values()[0], 0.632897188729f);
  EXPECT_EQ(data.values()[1], 0.0830692489615f);
}

}  // namespace
}  // namespace lloyd::data
