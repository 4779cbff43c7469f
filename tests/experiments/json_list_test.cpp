#include "experiments/text/json_list.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lloyd {
namespace {

using nlohmann::json;

TEST(JsonList, IsWhatTheWholeListWouldBe) {
  for (const json& whole : {json::array(), json{{{"a", 1}, {"b", {1, 2}}}},
                            json{1, "x", json::array(), json::object()}}) {
    std::ostringstream out;
    {
      JsonList list(out);
      for (const json& element : whole) list.add(element);
    }
    EXPECT_EQ(out.str(), whole.dump(1) + '\n');
  }
}

}  // namespace
}  // namespace lloyd
