// Tests the files that a spec names: data and initial centroids.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/experiments/spec_text.h"

namespace lloyd::testing {
namespace {

constexpr const char* kFileSpec = R"(name: t
versions: [cpu_sequential]
axes:
  k: [2]
data:
  file: points.csv
)";

TEST(DataFile, NAndDimAreTheFilesWhenLeftOut) {
  const Folder folder;
  folder.write("points.csv", "1,2,3\n4,5,6\n7,8,9\n0,0,0\n");
  folder.write("s.yaml", kFileSpec);
  const Spec spec = load_spec("s.yaml", {});
  EXPECT_EQ(ids_of(spec), Words{"cpu_sequential/n:4/k:2/dim:3/precision:fp32"});
  EXPECT_EQ(spec.data[0].source.file, folder.path() / "points.csv");
  EXPECT_EQ(spec.data[0].file, "points.csv");
  EXPECT_EQ(spec.resolved().at("data"),
            nlohmann::json::parse(R"({"file": "points.csv", "format": null, "header": null,
                                      "delimiter": null, "decimal": ".", "index_column": null,
                                      "label_column": null, "columns": null, "array": null,
                                      "mapped": false})"));
}

TEST(DataFile, OptionsOfTheReaderArrive) {
  const Folder folder;
  folder.write("points.csv", "i;junk\n");
  folder.write("points.txt", "id x y class\n1 2 3 0\n4 5 6 1\n");
  folder.write("s.yaml",
               std::string("name: t\nversions: [cpu_sequential]\naxes: {k: [1]}\n"
                           "data: {file: points.txt, format: space, header: true, index_column: 0, "
                           "label_column: -1}\n"));
  EXPECT_EQ(ids_of(load_spec("s.yaml", {})), Words{"cpu_sequential/n:2/k:1/dim:2/precision:fp32"});
}

TEST(DataFile, ColumnsHaveNamesOrNumbers) {
  const Folder folder;
  folder.write("points.csv", "id;y;1;x;kind\na;1,5;2;3;b\n");
  const auto source = [&](const std::string& keys) {
    folder.write("s.yaml",
                 "name: t\nversions: cpu_sequential\naxes: {k: 1}\ndata:\n  file: points.csv\n"
                 "  delimiter: \";\"\n  decimal: ','\n" +
                     keys);
    return load_spec("s.yaml", {}).data[0].source;
  };
  const data::Source read = source("  columns: [3, y, \"1\"]\n  header: true\n");
  EXPECT_EQ(read.columns, (std::vector<data::Column>{3, "y", "1"}));
  EXPECT_EQ(read.describe(), "points.csv(columns=[3, 'y', '1'])");
  EXPECT_EQ(data::read_file(read).values()[1], 1.5f);
  EXPECT_EQ(data::read_file(read).values()[2], 2.0f);
  const data::Source left = source("  index_column: id\n  label_column: -1\n  header: true\n");
  EXPECT_EQ(left.index_column, data::Column("id"));
  EXPECT_EQ(left.label_column, data::Column(-1));
  EXPECT_EQ(source("  columns: x\n  header: yes\n").columns, std::vector<data::Column>{"x"});
}

TEST(DataFile, AnIdColumnIsAnErrorWithItsRemedy) {
  const Folder folder;
  folder.write("points.csv", "name,x,y\na,1,2\n");
  folder.write("s.yaml", kFileSpec);
  try {
    load_spec("s.yaml", {});
    FAIL() << "no error";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(),
                 "s.yaml:6:9: data.file cannot be used: points.csv:2:1: 'a' is not a number (to "
                 "leave this column out, set index_column: name)");
  }
}

TEST(DataFile, TheFirstRowsAndColumns) {
  const Folder folder;
  folder.write("points.csv", "1,2,3\n4,5,6\n7,8,9\n0,0,0\n");
  folder.write("s.yaml",
               "name: t\nversions: [cpu_sequential]\naxes: {n: [2, 4], k: [2], dim: [3, 1]}\ndata: "
               "{file: points.csv}\n");
  EXPECT_EQ(ids_of(load_spec("s.yaml", {})).size(), 4u);
}

Words file_errors(const Folder& folder, const std::string& spec, const Overrides& overrides = {}) {
  folder.write("s.yaml", spec);
  try {
    load_spec("s.yaml", overrides);
    return {};
  } catch (const SpecError& error) {
    return error.errors;
  }
}

TEST(DataFile, MoreThanItHasIsAnErrorAtTheValue) {
  const Folder folder;
  folder.write("points.csv", "1,2,3\n4,5,6\n7,8,9\n0,0,0\n");
  EXPECT_EQ(
      file_errors(folder,
                  "name: t\nversions: [cpu_sequential]\naxes: {n: [2, 5000], k: [2], dim: [4]}\n"
                  "data: {file: points.csv}\n"),
      (Words{"s.yaml:3:15: n = 5,000 is more than the 4 points of points.csv",
             "s.yaml:3:36: dim = 4 is more than the 3 dimensions of points.csv"}));
  Overrides overrides;
  overrides.set = {"n=5"};
  EXPECT_EQ(file_errors(folder, kFileSpec, overrides),
            Words{"--set: n = 5 is more than the 4 points of points.csv"});
}

TEST(DataFile, MoreClustersThanRows) {
  const Folder folder;
  folder.write("points.csv", "1,2,3\n");
  EXPECT_EQ(file_errors(folder, kFileSpec),
            Words{"s.yaml:4:7: k = 2 exceeds n = 1: a cluster needs a point of its own; leave the "
                  "pair out with exclude: "
                  "[{k: 2, n: \"< 2\"}], or pair the values with zip: [[n, k]]"});
}

TEST(DataFile, FaultsOfTheFileAreErrorsOfTheSpecWithBothPlaces) {
  const Folder folder;
  const auto starts = [](const Words& errors, const std::string& start) {
    return errors.size() == 1 && errors.front().substr(0, start.size()) == start;
  };
  for (const auto& [bytes, place] : std::vector<std::pair<std::string, std::string>>{
           {"1,2\n3,x\n", ":2:3: "}, {"1,2\n3\n", ":2:"}, {"1,nan\n", ":1:3: "}, {"", ": "}}) {
    folder.write("points.csv", bytes);
    const Words errors = file_errors(folder, kFileSpec);
    EXPECT_TRUE(starts(errors, "s.yaml:6:9: data.file cannot be used: points.csv" + place))
        << bytes << ::testing::PrintToString(errors);
  }
  EXPECT_TRUE(starts(
      file_errors(folder, "name: t\nversions: [cpu_sequential]\naxes: {k: [2]}\ndata: {file: .}\n"),
      "s.yaml:4:14: data.file cannot be used: "));
}

TEST(DataFile, FoundBesideTheSpecFirstThenInTheCurrentFolder) {
  const Folder folder;
  folder.write("specs/s.yaml", kFileSpec);
  folder.write("points.csv", "1\n2\n");
  EXPECT_EQ(load_spec("specs/s.yaml", {}).points.front().n, 2);
  folder.write("specs/points.csv", "1\n2\n3\n");
  EXPECT_EQ(load_spec("specs/s.yaml", {}).points.front().n, 3);
  EXPECT_EQ(load_spec("specs/s.yaml", {}).data[0].source.file,
            folder.path() / "specs" / "points.csv");

  folder.write("specs/s.yaml",
               "name: t\nversions: [cpu_sequential]\naxes: {k: [2]}\ndata: {file: no.csv}\n");
  try {
    load_spec("specs/s.yaml", {});
    FAIL() << "no error";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(),
                 "specs/s.yaml:4:14: data.file 'no.csv' was not found; looked for 'specs/no.csv' "
                 "and 'no.csv'");
  }
}

TEST(InitFile, NeedsOneRowAClusterAndTheDimensionsOfThePoints) {
  const Folder folder;
  folder.write("c.csv", "1,2\n3,4\n5,6\n");
  const std::string head = "name: t\nversions: [cpu_sequential]\naxes: {n: [10], ";
  const std::string tail = "}\ndata: {generator: uniform}\nsolve: {init: file, init_file: c.csv}\n";
  EXPECT_EQ(file_errors(folder, head + "k: [3], dim: [2]" + tail), Words{});
  EXPECT_EQ(file_errors(folder, head + "k: [3, 4], dim: [3]" + tail),
            (Words{"s.yaml:3:24: k = 4, but c.csv has 3 rows: init_file needs one row per cluster",
                   "s.yaml:3:34: dim = 3, but the rows of c.csv have 2 values"}));
  folder.write("s.yaml", head + "k: [3], dim: [2]" + tail);
  const Spec spec = load_spec("s.yaml", {});
  EXPECT_EQ(spec.init.file.file, folder.path() / "c.csv");
  EXPECT_EQ(spec.resolved().at("solve").at("init_file"), "c.csv");
}

TEST(InitFile, IsAValueOfItsAxisAndHasNoSeed) {
  const Folder folder;
  folder.write("c.csv", "1,2\n3,4\n");
  const std::string axes =
      "name: t\nversions: [cpu_sequential]\naxes: {n: [10], k: [2], "
      "init: [file, kmeans++], init_seed: [1, 2]}\n";
  EXPECT_EQ(file_errors(folder, axes),
            (Words{"s.yaml:3:32: init = file needs a file with one row per cluster, as in solve: "
                   "{init: file, init_file: centroids.csv}"}));
  EXPECT_EQ(file_errors(folder, axes + "solve: {init: file, init_file: c.csv, restarts: 10}\n"),
            (Words{"s.yaml:4:49: restarts = 10 needs initial centroids that are drawn from a seed, "
                   "but init is file; leave restarts out"}));
  const std::string drawn =
      "name: t\nversions: [cpu_sequential]\naxes: {n: [10], k: [2], dim: [2], init: [kmeans++]}\n";
  EXPECT_EQ(file_errors(folder, drawn + "solve: {init: file, init_file: c.csv}\n"),
            (Words{"s.yaml:3:42: init = kmeans++ never reads solve.init_file (c.csv): add file to "
                   "the axis, or leave init_file out"}));
  folder.write("s.yaml", axes + "solve: {init: file, init_file: c.csv}\n");
  const std::string id = "cpu_sequential/n:10/k:2/dim:2/precision:fp32/init:";
  EXPECT_EQ(ids_of(load_spec("s.yaml", {})),
            (Words{id + "file", id + "kmeans++/init_seed:1", id + "kmeans++/init_seed:2"}));
}

TEST(SpecFiles, HaveNoSeed) {
  const Folder folder;
  folder.write("p.csv", "1,2\n3,4\n");
  const std::string head = "name: t\nversions: [cpu_sequential]\naxes: {k: [1]";
  EXPECT_EQ(file_errors(folder, head + ", data_seed: [1]}\ndata: {file: p.csv}\n"),
            (Words{"s.yaml:3:28: data_seed = 1 needs a generator, but the points come from p.csv; "
                   "leave data_seed out"}));
  folder.write("s.yaml", head + "}\ndata: {file: p.csv}\n");
  EXPECT_EQ(load_spec("s.yaml", {}).points.at(0).data_seed, std::nullopt);
}

TEST(SpecFiles, AreFoundAgainWhereverTheSpecIs) {
  const Folder folder;
  const std::string text =
      "name: t\nversions: [cpu_sequential]\naxes: {k: [1]}\ndata: {file: p.csv}\n";
  folder.write("a/s.yaml", text);
  folder.write("a/p.csv", "1,2\n3,4\n");
  const FoundFiles found = load_spec("a/s.yaml", {}).files();
  EXPECT_EQ(found, (FoundFiles{{"p.csv", (folder.path() / "a/p.csv").string()}}));
  folder.write("b/s.yaml", text);
  EXPECT_THROW(load_spec("b/s.yaml", {}), SpecError);
  EXPECT_EQ(load_spec("b/s.yaml", {}, "", 0, found).points.at(0).n, 2);
  EXPECT_EQ(load_spec("b/s.yaml", {}, "b/s.yaml", 0, found).points.at(0).n, 2);
  // If the user typed the spec's path, a file beside the spec is used. If nobody typed the path,
  // such a file is there by chance.
  folder.write("b/p.csv", "1,2\n");
  EXPECT_EQ(load_spec("b/s.yaml", {}, "", 0, found).points.at(0).n, 2);
  EXPECT_EQ(load_spec("b/s.yaml", {}, "b/s.yaml", 0, found).points.at(0).n, 1);
}

}  // namespace
}  // namespace lloyd::testing
