#include "scaler/policy/policy.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using std::chrono::seconds;

TEST(PolicyTest, PressureThatIsNotKnownIsNoEvidence) {
  Proposal proposal;
  AddPressure("CPU pressure", -1, &proposal);
  EXPECT_TRUE(proposal.evidence.empty());
  AddPressure("CPU pressure", 0, &proposal);
  EXPECT_EQ(Figure(proposal, "CPU pressure"), 0) << "none at all is known";
  EXPECT_EQ(proposal.evidence[0].window, seconds(10));
}

}  // namespace
}  // namespace muster::scaler
