// A version whose loop is a template over fp32 and fp64.
#pragma once

#include <memory>

#include "kernels/core/version.h"

namespace lloyd {

/// Runs Single for fp32 and Double for fp64, as the problem asks.
///
/// It takes two types, not one template: GCC gives EitherPrecision<Loop> external linkage even if
/// the template Loop is in an unnamed namespace, and then all files with a Loop of their own
/// silently share the code of the first one.
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
