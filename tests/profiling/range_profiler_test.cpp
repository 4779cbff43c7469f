// Tests the range profiler with a fake CUPTI: passes, restored state, and the message of every
// failure.
#include "profiling/range_profiler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tests/files.h"

namespace lloyd::profiling {
namespace {

using Words = std::vector<std::string>;

std::string fake_cupti() { return file_of_tests("libfake_cupti.so", LLOYD_FAKE_CUPTI); }

// Changes its own input, like a version that works in place.
class Mutating : public Subject {
 public:
  void prepare() override {
    ++prepared;
    input_ = 1;
  }
  void run() override {
    seen.push_back(input_);
    input_ *= 2;
    for (const char* phase : {"assign", "update", "assign"}) {
      if (observer_ != nullptr) observer_->begin_phase(phase);
      if (observer_ != nullptr) observer_->end_phase();
    }
  }
  void fetch() override {}
  void observe(RangeObserver* observer) override { observer_ = observer; }
  int iterations() const override { return 2; }

  int prepared = 0;
  std::vector<int> seen;

 private:
  int input_ = 0;
  RangeObserver* observer_ = nullptr;
};

class RangeProfilerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(fake_cupti()))
      GTEST_SKIP() << fake_cupti() << " is not there: the tests were moved alone";
    cupti_.emplace(fake_cupti());
  }
  ~RangeProfilerTest() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void fake(const std::string& name, const std::string& value) {
    setenv(("FAKE_CUPTI_" + name).c_str(), value.c_str(), 1);
    set_.push_back("FAKE_CUPTI_" + name);
  }
  RangeValues profile(Subject& subject) const {
    return profile_ranges(*cupti_, nullptr, "GH100", {"a__b.sum", "c__d.sum"}, Ranges::phases, 3, 1,
                          subject);
  }
  std::string refusal() const {
    Mutating subject;
    try {
      profile(subject);
    } catch (const Unavailable& error) {
      return error.what();
    }
    return "";
  }

  std::optional<Cupti> cupti_;

 private:
  Words set_;
};

TEST_F(RangeProfilerTest, EveryPassStartsFromRestoredState) {
  fake("PASSES", "4");
  Mutating subject;
  const RangeValues values = profile(subject);
  EXPECT_EQ(values.passes, 4u);
  EXPECT_EQ(subject.prepared, 4);
  EXPECT_EQ(subject.seen, (std::vector<int>{1, 1, 1, 1}));
}

TEST_F(RangeProfilerTest, APhaseThatComesAgainIsARangeOfItsOwn) {
  Mutating subject;
  const RangeValues values = profile(subject);
  EXPECT_EQ(values.names, (Words{"assign#0", "update#0", "assign#1"}));
  EXPECT_EQ(values.values, (std::vector<std::vector<double>>{{0, 1}, {100, 101}, {200, 201}}));
}

TEST_F(RangeProfilerTest, SaysThatRangesDidNotFit) {
  fake("ROOM", "2");
  EXPECT_EQ(refusal(), "more ranges than fit: 1 of 3 were dropped");
}

TEST_F(RangeProfilerTest, DoesNotReplayForEver) {
  fake("PASSES", "5");
  fake("NEVER_DONE", "1");
  EXPECT_EQ(refusal(), "the counters are not complete after the 5 runs that CUPTI asked for");
}

struct Failure {
  const char* function;
  int code;
  Words said;
};

class CuptiFailure : public RangeProfilerTest, public testing::WithParamInterface<Failure> {};

TEST_P(CuptiFailure, SaysWhatItMeansAndWhatHelps) {
  const Failure& failure = GetParam();
  fake("FAIL", failure.function + ("=" + std::to_string(failure.code)));
  const std::string text = refusal();
  for (const std::string& part : failure.said)
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  EXPECT_NE(text.find(failure.function + (": CUPTI error " + std::to_string(failure.code))),
            std::string::npos)
      << text;
}

INSTANTIATE_TEST_SUITE_P(
    Codes, CuptiFailure,
    testing::Values(
        Failure{"cuptiRangeProfilerEnable",
                35,
                {"no permission", "NVreg_RestrictProfilingToAdminUsers=0", "--cap-add=SYS_ADMIN"}},
        Failure{"cuptiProfilerGetCounterAvailability", 35, {"no permission"}},
        Failure{"cuptiRangeProfilerEnable", 40, {"virtual GPU", "enable_profiling=1"}},
        Failure{"cuptiRangeProfilerEnable", 39, {"another profiler", "DCGM"}},
        Failure{"cuptiRangeProfilerStart", 26, {"another profiler"}},
        Failure{"cuptiRangeProfilerEnable", 43, {"MIG", "whole GPU"}},
        Failure{"cuptiRangeProfilerSetConfig", 12, {"more ranges than fit"}},
        Failure{"cuptiProfilerHostInitialize", 46, {"CUPTI 13.0.1 does not know this GPU"}},
        Failure{"cuptiRangeProfilerEnable",
                14,
                {"CUPTI 13.0.1", "must not be older than the driver's CUDA"}},
        Failure{"cuptiRangeProfilerEnable", 999, {"CUPTI 13.0.1", "do not work together"}},
        Failure{"cuptiRangeProfilerDecodeData", 25, {"the fake's own words"}}),
    [](const auto& test) {
      return test.param.function + std::string("_") + std::to_string(test.param.code);
    });

TEST(Cupti, SaysThatTheLibraryIsMissing) {
  try {
    Cupti("/no/such/libcupti.so");
    FAIL();
  } catch (const Unavailable& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/libcupti.so"), std::string::npos);
  }
}

TEST_F(RangeProfilerTest, SaysThatTheLibraryIsTooOld) {
  try {
    cupti_->call("cuptiOfTheFuture");
    FAIL();
  } catch (const Unavailable& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("has no cuptiOfTheFuture: it is older than CUDA 13.0"), std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace lloyd::profiling
