#include "cli/cluster/rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace muster::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Rights, NothingIsMissing) {
  EXPECT_TRUE(CheckRights("team", RightsToRun(), [](const Right&) { return true; }).ok());
}

TEST(Rights, OneErrorNamesAllThatAreMissing) {
  const absl::Status status = CheckRights("team", RightsToRun(), [](const Right& right) {
    return TextOf(right) != "create pods/portforward" && TextOf(right) != "patch roles";
  });
  EXPECT_THAT(status, testing::StatusIs(absl::StatusCode::kPermissionDenied,
                                        AllOf(HasSubstr("namespace team"),
                                              HasSubstr("patch roles, create pods/portforward"))));
}

TEST(Rights, AQuestionThatFailsIsTheError) {
  const absl::Status status = CheckRights(
      "team", RightsToRun(),
      [](const Right&) -> absl::StatusOr<bool> { return absl::UnavailableError("away"); });
  EXPECT_THAT(status, testing::StatusIs(absl::StatusCode::kUnavailable, "away"));
}

TEST(Rights, OfThePodAreAmongThem) {
  std::string all;
  for (const Right& right : RightsToRun()) all += TextOf(right) + ";";
  EXPECT_THAT(all, AllOf(HasSubstr("create pods;"), Not(HasSubstr("pods/resize")),
                         HasSubstr("get pods/log;"), HasSubstr("get secrets;")));
}

}  // namespace
}  // namespace muster::cluster
