// One loop, written once for both precisions.
#pragma once

#include <memory>

#include "kernels/version.h"

namespace lloyd {

/// A version that computes in fp32 or fp64, as the problem asks: Loop<float> or Loop<double>.
template <template <typename> class Loop>
class EitherPrecision : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    if (problem.precision == Precision::fp64)
      loop_ = std::make_unique<Loop<double>>();
    else
      loop_ = std::make_unique<Loop<float>>();
    loop_->prepare(problem, context);
  }
  void run(Context& context) override { loop_->run(context); }
  Solution fetch(Context& context) override { return loop_->fetch(context); }

 private:
  std::unique_ptr<Version> loop_;
};

}  // namespace lloyd
