#pragma once

#include <gmock/gmock.h>

#include <string>

#include "tests/collectives/fake_member.h"
#include "tests/collectives/group_fixture.h"

namespace muster::collectives::testing {

/// Rank 0 of two members is the test; rank 1 is real.
class FakePeerTest : public ::testing::Test {
 protected:
  FakePeerTest() : group_(2) {
    group_.Start(1, 5);
    hello_ = {.job_id = "id-1",
              .worker = "worker-0",
              .incarnation = 100,
              .to_worker = "worker-1",
              .to_incarnation = 101,
              .lineage = LineageNumber(1),
              .attempt = AttemptNumber(5),
              .members = 2,
              .rank = 0,
              .to_rank = 1};
  }
  FakeMember Connect() { return FakeMember::ConnectTo(group_.members()[1].addresses[0]); }
  /// A connection whose hellos are done.
  FakeMember Greeted() {
    FakeMember member = Connect();
    EXPECT_THAT(member.SayHello(hello_).refused, ::testing::IsEmpty());
    member.Send({.kind = FrameKind::kBegin});
    return member;
  }
  static FrameHeader Chunk() {
    return {.kind = FrameKind::kChunk,
            .type = SumType::kFloat32,
            .lineage = LineageNumber(1),
            .attempt = AttemptNumber(5),
            .step = StepNumber(1),
            .bucket = 0,
            .chunk = 0,
            .elements = 2};
  }
  std::string Suspicion() { return group_.suspects(1).Await(1)[0].text; }

  Group group_;
  Hello hello_;
};

}  // namespace muster::collectives::testing
