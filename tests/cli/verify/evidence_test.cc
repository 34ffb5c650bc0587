#include "cli/verify/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/status_matchers.h"

namespace muster::verify {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

constexpr char kSummary[] = R"({
  "state": "succeeded",
  "datasets": [{"name": "numbers", "mode": "train", "epochs": [
    {"epoch": 0, "records_expected": 40, "records_committed": 40, "metrics": {"id": 19.5}},
    {"epoch": 1, "records_expected": 40, "records_committed": 32, "metrics": {"id": null}},
    {"epoch": 2, "records_expected": 40, "records_committed": 0, "metrics": {}}]}],
  "counters": {"redelivered_minibatches": 17, "replayed_shards": 1, "reverified_runs": 2,
               "parts_skipped": 3, "reasserted_leases": 4},
  "restarts": {"master": 2, "ps": 3, "worker": 5}
})";

TEST(ParseSummaryTest, LedgerAndPaths) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const LedgerSummary summary, ParseSummary(kSummary));
  ASSERT_EQ(summary.ledger.epochs.size(), 3u);
  EXPECT_EQ(summary.ledger.epochs[0].mean_id, 19.5);
  EXPECT_EQ(summary.ledger.epochs[1].expected, 40u);
  EXPECT_EQ(summary.ledger.epochs[1].committed, 32u);
  EXPECT_TRUE(std::isnan(summary.ledger.epochs[1].mean_id));
  EXPECT_TRUE(std::isnan(summary.ledger.epochs[2].mean_id));
  EXPECT_EQ(summary.ledger.redelivered_minibatches, 17u);
  EXPECT_EQ(summary.paths.replayed_shards, 1u);
  EXPECT_EQ(summary.paths.reverified_runs, 2u);
  EXPECT_EQ(summary.paths.parts_skipped, 3u);
  EXPECT_EQ(summary.paths.reasserted_leases, 4u);
  EXPECT_EQ(summary.master_restarts, 2u);
  EXPECT_EQ(summary.other_restarts, 8u);
}

TEST(RedeliveredToleranceTest, GrowsWithMastersMoreThanWithOthers) {
  EXPECT_EQ(RedeliveredTolerance({}, 0, 2), 24u);
  EXPECT_EQ(RedeliveredTolerance({.master_restarts = 2}, 0, 2), 72u);
  EXPECT_EQ(RedeliveredTolerance({.other_restarts = 3}, 2, 2), 24u + 20);
}

TEST(RedeliveredUnseenMaxTest, FewerThanAnyStormMakes) {
  EXPECT_EQ(RedeliveredUnseenMax(0), 12u);
  EXPECT_EQ(RedeliveredUnseenMax(3), 48u);
}

TEST(ParseSummaryTest, WhatIsNoSummary) {
  for (const char* text : {"", "{", "[]", "{}", R"({"datasets": []})",
                           R"({"datasets": [{"epochs": [{"records_expected": "many"}]}]})"}) {
    EXPECT_THAT(ParseSummary(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a summary")))
        << text;
  }
}

}  // namespace
}  // namespace muster::verify
