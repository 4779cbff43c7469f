// Tests specs with several sources of points, which the axis `data` names.
#include <gtest/gtest.h>

#include <string>

#include "experiments/run/job.h"
#include "tests/experiments/spec_text.h"

namespace lloyd::testing {
namespace {

constexpr const char* kHead = "name: t\nversions: [cpu_sequential]\n";
constexpr const char* kTwo =
    "data:\n"
    "  - {name: flat, generator: uniform, seed: 7}\n"
    "  - {name: b, file: p.csv}\n";

struct FolderWithPoints : Folder {
  FolderWithPoints() { write("p.csv", "1,2,3\n4,5,6\n7,8,9\n0,0,0\n"); }
};

Words errors_in(const Folder& folder, const std::string& rest) {
  folder.write("s.yaml", kHead + rest);
  try {
    load_spec("s.yaml", {});
    return {};
  } catch (const SpecError& error) {
    return error.errors;
  }
}

TEST(Sources, AreAnAxisWhoseValuesAreTheirNames) {
  const FolderWithPoints folder;
  folder.write("s.yaml", std::string(kHead) + "axes: {n: [2, 4], k: 2}\n" + kTwo);
  const Spec spec = load_spec("s.yaml", {});
  const std::string head = "cpu_sequential/n:", tail = "/precision:fp32/data:";
  EXPECT_EQ(ids_of(spec),
            (Words{head + "2/k:2/dim:2" + tail + "flat", head + "2/k:2/dim:3" + tail + "b",
                   head + "4/k:2/dim:2" + tail + "flat", head + "4/k:2/dim:3" + tail + "b"}));
  EXPECT_EQ(spec.points[0].data_seed, 7u);
  EXPECT_EQ(spec.points[1].data_seed, std::nullopt);
  EXPECT_EQ(spec.points[0].source(spec.data).describe(), "uniform(range=[0,1), seed=7)");
  EXPECT_EQ(spec.points[1].source(spec.data).file, folder.path() / "p.csv");
  EXPECT_EQ(spec.points[0].extent(spec.data).n, 0);
  EXPECT_EQ(spec.points[1].extent(spec.data).n, 4);
  EXPECT_NE(spec.points[2].inputs(), spec.points[3].inputs());
  EXPECT_EQ(spec.files().at("p.csv"), (folder.path() / "p.csv").string());
  const nlohmann::json data = spec.resolved().at("data");
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[0].at("name"), "flat");
  EXPECT_EQ(data[1].at("file"), "p.csv");
  const nlohmann::json once = to_json(spec.points[1]);
  EXPECT_EQ(once.at("data_name"), "b");
  EXPECT_EQ(point_from_json(once).data, "b");
}

TEST(Sources, AreChosenZippedAndExcludedByName) {
  const FolderWithPoints folder;
  const std::string tail = "/precision:fp32/data:";
  const auto ids = [&](const std::string& axes, const Overrides& overrides = {}) {
    folder.write("s.yaml", kHead + axes + kTwo);
    return ids_of(load_spec("s.yaml", overrides));
  };
  EXPECT_EQ(ids("axes: {n: 3, k: 2, data: b}\n"),
            Words{"cpu_sequential/n:3/k:2/dim:3" + tail + "b"});
  // A generator needs n, but none is left.
  EXPECT_EQ(ids("axes: {k: 2}\n", {.set = {"data=b"}}),
            Words{"cpu_sequential/n:4/k:2/dim:3" + tail + "b"});
  EXPECT_EQ(ids("axes: {n: [9, 3], k: 2, data: [flat, b]}\nzip: [n, data]\n"),
            (Words{"cpu_sequential/n:9/k:2/dim:2" + tail + "flat",
                   "cpu_sequential/n:3/k:2/dim:3" + tail + "b"}));
  EXPECT_EQ(ids("axes: {n: [3, 9], k: 2}\nexclude: [{data: b, n: \"> 4\"}, {data: flat, n: 3}]\n"),
            (Words{"cpu_sequential/n:3/k:2/dim:3" + tail + "b",
                   "cpu_sequential/n:9/k:2/dim:2" + tail + "flat"}));
  const Spec seeded = load_spec("s.yaml", {.seed = 5});
  EXPECT_EQ(seeded.data[0].source.seed, 5u);
}

TEST(Sources, OfFilesGiveEachItsOwnSize) {
  const FolderWithPoints folder;
  folder.write("q.csv", "1,2\n3,4\n");
  folder.write("s.yaml", std::string(kHead) +
                             "axes: {k: 2}\n"
                             "data: [{name: a, file: p.csv}, {name: b, file: q.csv}]\n");
  EXPECT_EQ(ids_of(load_spec("s.yaml", {})),
            (Words{"cpu_sequential/n:4/k:2/dim:3/precision:fp32/data:a",
                   "cpu_sequential/n:2/k:2/dim:2/precision:fp32/data:b"}));
}

TEST(Sources, AlsoHaveTheSeedsOfTheirAxis) {
  const FolderWithPoints folder;
  folder.write("s.yaml",
               std::string(kHead) + "axes: {n: 4, k: 2, dim: 2, data_seed: [1, 2]}\n" + kTwo);
  EXPECT_EQ(ids_of(load_spec("s.yaml", {})),
            (Words{"cpu_sequential/n:4/k:2/dim:2/precision:fp32/data:flat/data_seed:1",
                   "cpu_sequential/n:4/k:2/dim:2/precision:fp32/data:flat/data_seed:2",
                   "cpu_sequential/n:4/k:2/dim:2/precision:fp32/data:b"}));
}

TEST(Sources, AListOfOneNeedsNoName) {
  const Folder folder;
  folder.write("s.yaml",
               std::string(kHead) + "axes: {n: 4, k: 2}\ndata: [{generator: normal, seed: 3}]\n");
  const Spec spec = load_spec("s.yaml", {});
  EXPECT_EQ(ids_of(spec), Words{"cpu_sequential/n:4/k:2/dim:2/precision:fp32"});
  EXPECT_TRUE(spec.resolved().at("data").is_object());
}

TEST(Sources, ErrorsHaveTheirPlace) {
  const FolderWithPoints folder;
  const auto errors = [&](const std::string& rest) { return errors_in(folder, rest); };
  const std::string axes = "axes: {n: 4, k: 2}\n";
  EXPECT_EQ(errors(axes + "data: []\n"),
            Words{"s.yaml:4:7: data lists no source; name at least one, or leave data out"});
  EXPECT_EQ(errors(axes + "data: [{generator: uniform}, {name: b, generator: normal}]\n"),
            Words{"s.yaml:4:8: each of several sources needs a name, as in {name: a, generator: "
                  "uniform}"});
  EXPECT_EQ(errors(axes + "data: [{name: b, generator: uniform}, {name: b, generator: normal}]\n"),
            Words{"s.yaml:4:46: data has two sources called 'b'; rename one"});
  EXPECT_EQ(errors(axes + "data: {name: a/b, generator: uniform}\n"),
            Words{"s.yaml:4:14: data.name must be up to 64 of a-z, A-Z, 0-9, '_', '.' and '-', not "
                  "'a/b'"});
  EXPECT_EQ(errors(axes + "data: [{name: a, generator: uniform}, b]\n"),
            Words{"s.yaml:4:39: data must be a map (key: value), not 'b'"});
  EXPECT_EQ(errors("axes: {n: 4, k: 2, data: a}\n"),
            Words{"s.yaml:3:26: axis 'data' needs sources that have names, as in data: [{name: a, "
                  "generator: uniform}]"});
  EXPECT_EQ(errors(std::string("axes: {n: 4, k: 2, data: flta}\n") + kTwo),
            Words{"s.yaml:3:26: unknown data 'flta'; did you mean 'flat'?"});
  EXPECT_EQ(errors(std::string("axes: {n: [4, 9], k: 2}\n") + kTwo),
            Words{"s.yaml:3:15: n = 9 is more than the 4 points of data source b; leave the pair "
                  "out with exclude: [{data: b, n: \"> 4\"}]"});
  EXPECT_EQ(errors(std::string("axes: {k: 2}\n") + kTwo),
            Words{"s.yaml:3:1: axes need 'n', the numbers of points, as in n: [1e4, 1e5]"});
  EXPECT_EQ(errors(std::string("axes: {n: 4, k: 2}\nexclude: [{data: c}]\n") + kTwo),
            Words{"s.yaml:4:18: unknown data 'c'; choose from flat, b"});
}

}  // namespace
}  // namespace lloyd::testing
