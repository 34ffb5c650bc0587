#include "net/offered_rings.h"

#include <sys/socket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/descriptors.h"
#include "base/failpoint.h"
#include "tests/support/status_matchers.h"

namespace muster::net {
namespace {

using muster::testing::IsOk;

constexpr size_t kWanted = RingBudget::kRingBytesMin;

class OfferedRingsTest : public ::testing::Test {
 protected:
  RingBudget budget_{64u << 20};
};

TEST_F(OfferedRingsTest, WhatTheyTakeOfTheBudgetComesBackWithThem) {
  {
    OfferedRings rings(&budget_);
    EXPECT_EQ(rings.Make(kWanted, "peer"), kWanted);
    EXPECT_TRUE(rings.waiting());
    EXPECT_EQ(budget_.bytes(), 2 * kWanted);
    rings.Drop();
    EXPECT_FALSE(rings.waiting());
    EXPECT_EQ(budget_.bytes(), 2 * kWanted) << "the peer counts until it is gone";
  }
  EXPECT_EQ(budget_.bytes(), 0);
}

TEST_F(OfferedRingsTest, ThePeerGetsTheSameMemory) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const OwnedFd here(sockets[0]), there(sockets[1]);
  OfferedRings rings(&budget_);
  ASSERT_EQ(rings.Make(kWanted, "peer"), kWanted);
  absl::StatusOr<RingMemory> made = rings.HandOver(here.get());
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->descriptor(), -1) << "it is of no more use here";
  EXPECT_FALSE(rings.waiting());
  absl::StatusOr<OwnedFd> received = ReceiveDescriptor(there.get());
  ASSERT_THAT(received, IsOk());
  absl::StatusOr<RingMemory> opened = RingMemory::Open(*std::move(received), kWanted);
  ASSERT_THAT(opened, IsOk());
  made->makers().data[0] = std::byte{7};
  EXPECT_EQ(opened->makers().data[0], std::byte{7});
}

TEST_F(OfferedRingsTest, APeerThatIsGoneGetsNothingAndTheBudgetComesBack) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const OwnedFd here(sockets[0]);
  ::close(sockets[1]);
  {
    OfferedRings rings(&budget_);
    ASSERT_EQ(rings.Make(kWanted, "peer"), kWanted);
    EXPECT_THAT(rings.HandOver(here.get()),
                testing::StatusIs(absl::StatusCode::kUnavailable, ::testing::_));
    EXPECT_FALSE(rings.waiting());
  }
  EXPECT_EQ(budget_.bytes(), 0);
}

TEST_F(OfferedRingsTest, WithoutBudgetThereAreNone) {
  RingBudget none(0);
  OfferedRings rings(&none);
  EXPECT_EQ(rings.Make(kWanted, "peer"), 0);
  EXPECT_FALSE(rings.waiting());
}

#if MUSTER_WITH_FAILPOINTS
TEST_F(OfferedRingsTest, WithoutMemoryThePeerStaysWithItsSocketAndTheBudgetIsWhole) {
  ASSERT_THAT(ArmFailpoints({.actions = "rings.before-make=full"}), IsOk());
  OfferedRings rings(&budget_);
  EXPECT_EQ(rings.Make(kWanted, "peer"), 0);
  EXPECT_FALSE(rings.waiting());
  EXPECT_EQ(budget_.bytes(), 0);
  EXPECT_THAT(ArmFailpoints({}), IsOk());
}
#endif

}  // namespace
}  // namespace muster::net
