#include "experiments/record/answers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "data/sources/dataset.h"
#include "tests/folder_test.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

class AnswersTest : public FolderTest {
 protected:
  AnswersTest() {
    point_.id = "v/n:3/k:70000";
    point_.n = 3;
    point_.dim = 1;
  }

  /// The bytes of a part after the point's answer was written.
  std::string written(const std::string& part, int k, const Solution& solution) {
    point_.k = k;
    write_answer(folder_, {part}, point_, solution);
    std::ifstream in(folder_ / answer_file(point_.id, part), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  Point point_;
};

TEST_F(AnswersTest, NamesAreThoseOfThePoints) {
  EXPECT_EQ(answer_file("cpu_sequential/n:10/init:kmeans||", "labels"),
            "cpu_sequential,n=10,init=kmeans%7C%7C,labels.npy");
  EXPECT_EQ(answer_file("a.b-c+d~e/\xc3\xa9 ,", "centroids"),
            "a.b-c+d~e,%C3%A9%20%2C,centroids.npy");
}

TEST_F(AnswersTest, LabelsAreAsNarrowAsKAllows) {
  const auto type = [&](int k) {
    const Solution solution{{0, 1, k - 1}, {}, 1};
    const std::string bytes = written("labels", k, solution);
    data::Source source;
    source.file = folder_ / answer_file(point_.id, "labels");
    const data::Dataset read = data::read_file(source);
    EXPECT_EQ(read.n(), 3);
    EXPECT_EQ(read.values()[2], static_cast<float>(k - 1));
    return bytes.substr(bytes.find("descr") + 9, 3);
  };
  EXPECT_EQ(type(2), "|u1");
  EXPECT_EQ(type(256), "|u1");
  EXPECT_EQ(type(257), "<u2");
  EXPECT_EQ(type(65536), "<u2");
  EXPECT_EQ(type(65537), "<i4");
}

TEST_F(AnswersTest, CentroidsLoseNoDigits) {
  const auto type = [&](Precision precision, double value) {
    point_.precision = precision;
    const std::string bytes = written("centroids", 2, {{}, {0.5, value}, 1});
    return bytes.substr(bytes.find("descr") + 9, 3);
  };
  EXPECT_EQ(type(Precision::fp32, 0.25), "<f4");
  EXPECT_EQ(type(Precision::fp32, 0.1), "<f8");
  EXPECT_EQ(type(Precision::fp16, 0.25), "<f4");
  EXPECT_EQ(type(Precision::fp64, 0.25), "<f8");
}

}  // namespace
}  // namespace lloyd
