#pragma once
// The fixture of the executors' contract: a chain of three stages, so that first, middle and last are covered.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/stages/chain.h"

namespace shoal {

class ExecutorContract : public ::testing::TestWithParam<ExecutorMaker> {
 protected:
  ExecutorContract() : chain(GetParam(), contract_model(), 3) {}
  Chain another() { return Chain(GetParam(), contract_model(), 3); }
  // An inner step of every stage; expects success.
  std::vector<InnerStepResult> step(WindowSlot window) {
    std::vector<InnerStepResult> results;
    for (std::size_t k = 0; k < chain.size(); ++k) {
      const Result<InnerStepResult> result = chain.at(k).inner_step(window, contract_step());
      EXPECT_TRUE(result.ok());
      if (result.ok()) results.push_back(*result);
    }
    return results;
  }
  // Of one waiting entry.
  std::uint64_t kept_graphs(std::size_t k) const { return GetParam().keeps_graphs || k + 1 == chain.size() ? 1 : 0; }
  double tolerance() const { return GetParam().tolerance; }
  Chain chain;
};

}  // namespace shoal
