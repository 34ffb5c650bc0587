#include "base/status.h"

#include <cerrno>

#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError(fmt::format("{} is odd", value));
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  MUSTER_ASSIGN_OR_RETURN(const int half, Half(value));
  MUSTER_RETURN_IF_ERROR_PREPEND(Half(half).status(), "second half");
  return half / 2;
}

TEST(StatusTest, MacrosPassErrorsOnWithTheirContext) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_THAT(Quarter(3), StatusIs(absl::StatusCode::kInvalidArgument, "3 is odd"));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "second half: 3 is odd"));
}

TEST(StatusTest, AnnotateKeepsOkAndErrnoKeepsItsText) {
  EXPECT_THAT(Annotate(absl::OkStatus(), "x"), IsOk());
  EXPECT_THAT(ErrnoStatus(ENOSPC, "cannot write /a"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("cannot write /a")));
}

}  // namespace
}  // namespace muster
