// The harness draws points on the GPU where a version runs there. Any machine draws the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "data/sources/dataset.h"
#include "data/sources/generators.h"
#include "tests/kernels/open_gpu.h"

namespace lloyd {
namespace {

#if LLOYD_CUDA
std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
#endif

TEST(DrawOnGpu, HasTheBitsOfTheCpu) {
#if LLOYD_CUDA
  std::unique_ptr<Session> session;
  Context context;
  if (const std::string why = open_gpu(session, context); !why.empty()) GTEST_SKIP() << why;
  struct Size {
    std::int64_t n;
    int dim;
  };
  for (const data::GeneratorInfo& info : data::generators()) {
    SCOPED_TRACE(info.name);
    data::Source source;
    source.generator = info.name;
    source.seed = 7;
    // The third does not fit into what is drawn at once, and its rows end in the middle of it.
    for (const auto [n, dim] : {Size{1, 1}, Size{1003, 5}, Size{300'001, 60}, Size{70'000, 3}}) {
      const data::Dataset expected = data::generate(source, n, dim);
      const data::Dataset drawn = data::generate(source, n, dim, 0, data::draw_on_gpu);
      for (std::size_t i = 0; i < expected.values().size(); ++i)
        ASSERT_EQ(bits(expected.values()[i]), bits(drawn.values()[i]))
            << n << " × " << dim << ", value " << i;
      std::vector<float> last(static_cast<std::size_t>(dim));
      data::generate_rows(source, n - 1, last, dim, 0, data::draw_on_gpu);
      EXPECT_TRUE(std::equal(last.begin(), last.end(), expected.values().end() - dim));
    }
  }
#else
  GTEST_SKIP() << "built without CUDA";
#endif
}

}  // namespace
}  // namespace lloyd
