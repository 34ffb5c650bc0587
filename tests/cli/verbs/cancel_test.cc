#include <gtest/gtest.h>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

std::optional<bool> Snapshot(const std::string& line) {
  return Parsed<steer::CancelOptions>(AddCancel, line).value().snapshot;
}

TEST(CancelVerbTest, WhoDoesNotSayWhetherToTakeASnapshotIsAsked) {
  EXPECT_EQ(Snapshot("cancel job.yaml"), std::nullopt);
  EXPECT_EQ(Snapshot("cancel job.yaml --snapshot"), true);
  EXPECT_EQ(Snapshot("cancel job.yaml --no-snapshot"), false);
}

}  // namespace
}  // namespace muster
