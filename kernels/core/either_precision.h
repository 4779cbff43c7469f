// One loop, written once for both precisions.
#pragma once

#include <memory>

#include "kernels/core/version.h"

namespace lloyd {

/// A version that computes in fp32 or fp64, as the problem asks: Single or Double.
///
/// Two types, not one template: GCC gives EitherPrecision<Loop> external linkage even where the template Loop is of an
/// unnamed namespace, and then all files with a Loop of their own silently share the first one's code.
template <typename Single, typename Double>
class EitherPrecision : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    if (problem.precision == Precision::fp64)
      loop_ = std::make_unique<Double>();
    else
      loop_ = std::make_unique<Single>();
    loop_->prepare(problem, context);
  }
  void run(Context& context) override { loop_->run(context); }
  Solution fetch(Context& context) override { return loop_->fetch(context); }

 private:
  std::unique_ptr<Version> loop_;
};

}  // namespace lloyd
