#include "ps/net/connection_limits.h"

#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::muster::testing::StatusIs;
using ::testing::HasSubstr;

TEST(DescriptorsTest, LimitsThatFitAreLeftAlone) {
  const LaneLimits wanted{.unix_connections_max = 100, .tcp_connections_max = 20};
  const uint64_t needed = DescriptorsFor(wanted, 3);
  EXPECT_EQ(needed, kReservedDescriptors + 3 * (kReservedDescriptorsPerLane + 120));
  MUSTER_ASSERT_OK_AND_ASSIGN(const LaneLimits fitting, FitLimits(wanted, 3, needed));
  EXPECT_EQ(fitting.unix_connections_max, 100u);
  EXPECT_EQ(fitting.tcp_connections_max, 20u);
}

TEST(DescriptorsTest, AllConnectionsTogetherLeaveTheReserve) {
  for (const uint32_t lanes : {1u, 2u, 7u, 256u}) {
    for (uint64_t descriptors = 150; descriptors < 70'000; descriptors += 97) {
      const auto fitting = FitLimits({}, lanes, descriptors);
      if (!fitting.ok()) {
        EXPECT_LT(descriptors, kReservedDescriptors + uint64_t{16} * lanes);
        continue;
      }
      EXPECT_LE(DescriptorsFor(*fitting, lanes), descriptors);
      EXPECT_GE(fitting->tcp_connections_max, 4u);
      EXPECT_GE(fitting->unix_connections_max, fitting->tcp_connections_max);
    }
  }
}

TEST(DescriptorsTest, TooFewAreRefusedWithTheNumber) {
  EXPECT_THAT(FitLimits({}, 2, 159),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("may have 159 open files"), HasSubstr("at least 160"))));
  EXPECT_TRUE(FitLimits({}, 2, 160).ok());
}

}  // namespace
}  // namespace muster::ps
