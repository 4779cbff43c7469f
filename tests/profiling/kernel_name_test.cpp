#include "profiling/kernel_name.h"

#include <gtest/gtest.h>

namespace lloyd::profiling {
namespace {

TEST(KernelName, IsTheQualifiedNameWithoutTypesAndParameters) {
  // void lloyd::luigi::(anonymous namespace)::assign<2>(float const*, long)
  EXPECT_EQ(kernel_name("_ZN5lloyd5luigi12_GLOBAL__N_16assignILi2EEEvPKfl"),
            "lloyd::luigi::assign<2>");
  // lloyd::luigi::reduce(float const*, int)
  EXPECT_EQ(kernel_name("_ZN5lloyd5luigi6reduceEPKfi"), "lloyd::luigi::reduce");
  EXPECT_EQ(kernel_name("sm80_xmma_gemm_f32f32"), "sm80_xmma_gemm_f32f32");
  EXPECT_EQ(kernel_name(""), "");
}

TEST(KernelName, LongTemplateArgumentsBecomeANumber) {
  // void f<std::pair<…>, …>() with arguments of more than 40 characters, first with long and then
  // with int.
  const std::string with_long = kernel_name("_Z1fISt4pairIS0_IdfES0_IdlEES0_IS0_IffES0_IddEEEvv");
  const std::string with_int = kernel_name("_Z1fISt4pairIS0_IdfES0_IdiEES0_IS0_IffES0_IddEEEvv");
  EXPECT_EQ(with_long.rfind("f<~", 0), 0u) << with_long;
  EXPECT_EQ(with_long.size(), 10u) << with_long;
  EXPECT_NE(with_long, with_int);
}

}  // namespace
}  // namespace lloyd::profiling
