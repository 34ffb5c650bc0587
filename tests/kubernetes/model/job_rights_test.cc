#include "kubernetes/model/job_rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JobRightsTest, TextsAreAsKubectlWritesThem) {
  EXPECT_EQ(TextOf(kRightToResize), "patch pods/resize");
  EXPECT_EQ(TextOf(RightsOfJob().front()), "get pods");
}

TEST(JobRightsTest, AJobDoesWithoutTheRightToResize) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::vector<std::string> missing,
                              MissingOf(RightsOfJob(), [](const Right& right) {
                                return TextOf(right) != TextOf(kRightToResize);
                              }));
  EXPECT_THAT(missing, IsEmpty());
}

TEST(JobRightsTest, WhatIsMissingIsNamed) {
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> missing,
      MissingOf(RightsOfJob(), [](const Right& right) { return TextOf(right) != "get pods/log"; }));
  EXPECT_THAT(missing, ElementsAre("get pods/log"));
  EXPECT_THAT(
      MissingOf(RightsOfJob(),
                [](const Right&) -> absl::StatusOr<bool> { return absl::UnavailableError("away"); })
          .status(),
      testing::StatusIs(absl::StatusCode::kUnavailable, "away"));
}

}  // namespace
}  // namespace muster::kubernetes
