#include <cmath>

#include "testing.h"

namespace lloyd::data {
namespace {

class SourceTest : public FileTest {
 protected:
  static Source generated(const std::string& name) {
    Source source;
    source.generator = name;
    return source;
  }
};

TEST_F(SourceTest, DescribesItselfWithTheDefaults) {
  Source source = generated("uniform");
  EXPECT_EQ(source.describe(), "uniform(range=[0,1), seed=42)");
  source.low = -2.5;
  EXPECT_EQ(source.describe(), "uniform(range=[-2.5,1), seed=42)");
  EXPECT_EQ(generated("blobs").describe(), "blobs(range=[-10,10), centers=16, sigma=1, seed=42)");
  EXPECT_EQ(generated("uva_int").describe(), "uva_int(seed=42)");
  EXPECT_EQ(generated("stamp_gauss").describe(), "stamp_gauss(centers=16, seed=42)");
  EXPECT_EQ(write("points.csv", "1\n").describe(), "points.csv");
}

TEST_F(SourceTest, RefusesOptionsThatMakeNoSense) {
  const auto error = [&](const Source& source) {
    return error_of([&] { generate(source, 1, 1); });
  };
  EXPECT_EQ(error(generated("unifrom")),
            "unknown generator 'unifrom'; the generators are uniform, blobs, uva_int, stamp_gauss, "
            "normal, embeddings, sift, gps, rgb, anisotropic, skewed");
  Source source = generated("uva_int");
  source.sigma = 2;
  EXPECT_EQ(error(source), "generator 'uva_int' has no key 'sigma'; its keys are seed");
  source = generated("uniform");
  source.centers = 2;
  EXPECT_EQ(error(source), "generator 'uniform' has no key 'centers'; its keys are seed, range");
  source = generated("uniform");
  source.low = 1;
  EXPECT_EQ(error(source),
            "range must go from low to high with a float between them, not from 1 to 1");
  source.high = 1e39;
  EXPECT_EQ(error(source), "range must lie between -1e38 and 1e38, not go from 1 to 1e+39");
  source = generated("blobs");
  source.centers = 0;
  EXPECT_EQ(error(source), "centers must be at least 1, not 0");
  source = generated("blobs");
  source.sigma = -1;
  EXPECT_EQ(error(source), "sigma must be from 0 to 1e30, not -1");
  EXPECT_EQ(error_of([] { load(Source{}, 1, 1); }), "data needs either a generator or a file");
}

TEST_F(SourceTest, TheFingerprintTellsDifferentDataApart) {
  Source source = generated("uniform");
  const std::string first = fingerprint(source);
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos);
  source.low = 0;  // the default, given explicitly
  EXPECT_EQ(fingerprint(source), first);
  source.seed = 43;
  EXPECT_NE(fingerprint(source), first);
  EXPECT_NE(fingerprint(generated("normal")), first);

  const Source file = write("a.csv", "1,2\n3,4\n");
  EXPECT_EQ(fingerprint(file), fingerprint(write("copy.txt", "1,2\n3,4\n")));
  EXPECT_NE(fingerprint(file), fingerprint(write("b.csv", "1,2\n3,5\n")));
  Source other = file;
  other.header = true;
  EXPECT_NE(fingerprint(file), fingerprint(other));
  other = file;
  other.index_column = 0;
  EXPECT_NE(fingerprint(file), fingerprint(other));
  other = file;
  other.label_column = 0;
  EXPECT_NE(fingerprint(file), fingerprint(other));
  EXPECT_EQ(error_of([&] { fingerprint(write("a.csv", "")); }), "D/a.csv: is empty");
}

TEST_F(SourceTest, RowsOfUnitLengthPointTheSameWay) {
  Source source = write("a.csv", "3,4\n-1e30,0\n1e-30,1e-30\n");
  source.unit_length = true;
  const float half = std::sqrt(0.5F);
  EXPECT_EQ(values_of(load(source, 0, 0)), (Values{0.6F, 0.8F, -1, 0, half, half}));
  EXPECT_EQ(values_of(load(source, 1, 1)), Values{1});  // of the columns that are read
  EXPECT_EQ(source.describe(), "a.csv by cosine");
  Source plain = source;
  plain.unit_length = false;
  EXPECT_NE(fingerprint(source), fingerprint(plain));
  source = write("a.csv", "1,2\n0,0\n");
  source.unit_length = true;
  EXPECT_EQ(read_error(source),
            "a.csv by cosine: row 2 is 0 in all columns, so it has no direction for distance: "
            "cosine; remove the row");
  source = generated("uva_int");
  source.unit_length = true;
  EXPECT_TRUE(error_of([&] {
                load(source, 5000, 1);
              }).ends_with("has no direction for distance: cosine; use distance: euclidean"));
  source = generated("blobs");
  source.unit_length = true;
  EXPECT_EQ(source.describe(), "blobs(range=[-10,10), centers=16, sigma=1, seed=42) by cosine");
  const Dataset data = load(source, 2000, 3);
  EXPECT_EQ(values_of(load(source, 2000, 3, 1)), values_of(data));
  for (std::size_t i = 0; i < 2000; ++i)
    EXPECT_NEAR(
        std::hypot(data.values()[3 * i], data.values()[3 * i + 1], data.values()[3 * i + 2]), 1,
        1e-6);
}

}  // namespace
}  // namespace lloyd::data
