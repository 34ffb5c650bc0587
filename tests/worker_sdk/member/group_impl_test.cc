#include "worker_sdk/member/group_impl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "muster/muster.h"
#include "tests/worker_sdk/member/fake_member_session.h"
#include "worker_sdk/session/forked_child.h"

namespace muster::internal {
namespace {

using ::testing::ElementsAre;

TEST(GroupImplTest, RegistersWhatThePublicClassIsGiven) {
  auto owned = std::make_unique<GroupImpl>();
  const GroupImpl& impl = *owned;
  Group group(std::move(owned));
  std::vector<float> weights(7);
  std::vector<double> moments(5);
  std::vector<int64_t> counts(3);
  std::vector<std::byte> bytes(2);
  SumBucket fixed = group.AddBucket("fixed", 7);
  SumBucket half = group.AddBucket("half", 4, {.type = SumType::kBfloat16});
  group.AddBucket("float", 4, {.type = SumType::kFloat32});
  group.AddState("weights", std::span(weights));
  group.AddState("moments", std::span(moments));
  group.AddState("counts", std::span(counts));
  group.AddState("bytes", std::span(bytes));
  EXPECT_TRUE(group.status().ok());
  EXPECT_EQ(fixed.elements(), 7u);
  EXPECT_EQ(half.elements(), 4u);
  EXPECT_EQ(impl.tensors().tensors(),
            (std::vector<GroupTensor>{{"fixed", GroupDtype::kFixedPoint, 7, true, 24},
                                      {"half", GroupDtype::kBfloat16, 4, true, 0},
                                      {"float", GroupDtype::kFloat32, 4, true, 0},
                                      {"weights", GroupDtype::kFloat32, 7, false, 0},
                                      {"moments", GroupDtype::kFloat64, 5, false, 0},
                                      {"counts", GroupDtype::kInt64, 3, false, 0},
                                      {"bytes", GroupDtype::kBytes, 2, false, 0}}));
  const std::vector<std::span<std::byte>> memory = impl.tensors().memory();
  ASSERT_EQ(memory.size(), 4u);
  EXPECT_EQ(memory[0].size(), 28u);
  EXPECT_EQ(static_cast<void*>(memory[1].data()), moments.data());
}

TEST(GroupImplTest, TheFirstInvalidCallFailsTheGroup) {
  Group group(std::make_unique<GroupImpl>());
  std::vector<float> weights(7);
  group.AddState("weights", std::span(weights));
  group.AddState("weights", std::span(weights));
  group.AddBucket("none", 0);
  EXPECT_EQ(group.status().code(), Status::Code::kInvalidArgument);
  EXPECT_EQ(group.status().message(),
            "group tensor \"weights\": the name is taken; choose another");
}

TEST(GroupImplTest, ABucketOnADeviceNeedsABackendThatAddsThere) {
  Group group(std::make_unique<GroupImpl>());
  group.AddBucket("layers", 7, {.on_device = true});
  EXPECT_EQ(group.status().code(), Status::Code::kInvalidArgument);
  EXPECT_EQ(group.status().message(),
            "the bucket \"layers\" is on the device, where only NCCL adds: give Session::Group the "
            "backend CollectiveOptions::Backend::kNccl");
}

TEST(GroupImplTest, LocalStepsHaveNoBucketsOnADevice) {
  auto impl = std::make_unique<GroupImpl>();
  impl->AddWholeBucket("outer", 7, {.on_device = true});
  EXPECT_FALSE(impl->status().ok());
}

TEST(GroupImplTest, AFailedGroupFailsItsSessionAndGivesItsPlaceBack) {
  FakeMemberSession session;
  {
    GroupImpl group(&session);
    group.AddBucket("none", 0, {});
    group.AddBucket("none", 0, {});
    ASSERT_EQ(session.errors.size(), 1u) << "the first failure is told once";
    EXPECT_EQ(session.errors[0], group.status().message());
    EXPECT_TRUE(session.returned.empty());
  }
  EXPECT_THAT(session.returned, ElementsAre(0));
}

TEST(GroupImplTest, AForkedChildCanDoNothingWithAGroup) {
  auto owned = std::make_unique<GroupImpl>();
  GroupImpl& impl = *owned;
  std::optional<Group> group(std::move(owned));
  HasSession();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    std::vector<float> weights(7);
    group->AddState("weights", std::span(weights));
    group->AddBucket("none", 0);
    const bool fails = group->status().code() == Status::Code::kFailedPrecondition &&
                       !group->NextStep().has_value() && !group->HasFinalState() &&
                       impl.tensors().memory().empty() && impl.status().ok();
    group.reset();
    ::_exit(fails ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(group->status().ok());
}

TEST(GroupImplTest, AGroupWhoseSessionHasFailedBeginsNoStep) {
  FakeMemberSession session;
  GroupImpl group(&session);
  group.AddBucket("sum", 1, {});
  EXPECT_TRUE(group.status().ok());
  session.failure = absl::UnavailableError("the master is away");
  EXPECT_EQ(group.status(), session.failure);
  EXPECT_EQ(group.NextStep(), nullptr);
  EXPECT_EQ(group.status(), session.failure);
}

}  // namespace
}  // namespace muster::internal
