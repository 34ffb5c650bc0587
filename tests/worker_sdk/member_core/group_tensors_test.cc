#include "worker_sdk/member_core/group_tensors.h"

#include <array>

#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using ::testing::HasSubstr;

auto Invalid(const char* text) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
}

TEST(GroupTensorsTest, KeepsTheOrderOfBucketsAndState) {
  GroupTensors tensors;
  std::array<std::byte, 24> memory{};
  MUSTER_ASSERT_OK_AND_ASSIGN(uint32_t first,
                              tensors.AddBucket("g", 10, GroupDtype::kFixedPoint, 24));
  EXPECT_THAT(tensors.AddState("w", GroupDtype::kFloat64, 3, memory), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(uint32_t second,
                              tensors.AddBucket("h", 1, GroupDtype::kBfloat16, 24));
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(second, 1u);
  EXPECT_EQ(tensors.tensors(),
            (std::vector<GroupTensor>{{"g", GroupDtype::kFixedPoint, 10, true, 24},
                                      {"w", GroupDtype::kFloat64, 3, false, 0},
                                      {"h", GroupDtype::kBfloat16, 1, true, 0}}));
  ASSERT_EQ(tensors.memory().size(), 1u);
  EXPECT_EQ(tensors.memory()[0].data(), memory.data());
}

TEST(GroupTensorsTest, BucketsNameWhatAddsThem) {
  GroupTensors tensors;
  tensors.SetBackend("NCCL");
  ASSERT_THAT(tensors.AddBucket("g", 10, GroupDtype::kFloat32, 0).status(), IsOk());
  ASSERT_THAT(tensors.AddState("w", GroupDtype::kInt64, 0, {}), IsOk());
  EXPECT_EQ(tensors.tensors()[0].backend, "NCCL");
  EXPECT_EQ(tensors.tensors()[1].backend, "");
}

TEST(GroupTensorsTest, RefusesWhatCanNeverWork) {
  GroupTensors tensors;
  const GroupDtype fixed = GroupDtype::kFixedPoint;
  ASSERT_THAT(tensors.AddState("w", GroupDtype::kInt64, 0, {}), IsOk());
  EXPECT_THAT(tensors.AddBucket("w", 1, fixed, 24), Invalid("\"w\": the name is taken"));
  EXPECT_THAT(tensors.AddBucket("", 1, fixed, 24), Invalid("1 to 256 bytes"));
  EXPECT_THAT(tensors.AddBucket(std::string(257, 'a'), 1, fixed, 24), Invalid("1 to 256 bytes"));
  EXPECT_THAT(tensors.AddBucket("g", 0, fixed, 24), Invalid("no elements"));
  EXPECT_THAT(tensors.AddBucket("g", GroupTensors::kElementsMax + 1, fixed, 24),
              Invalid("at most 17179869184"));
  EXPECT_THAT(tensors.AddBucket("g", 1, fixed, 41), Invalid("fraction_bits 41, at most 40"));
  EXPECT_THAT(tensors.AddBucket("g", 1, GroupDtype::kInt64, 0), Invalid("cannot be summed"));
  EXPECT_EQ(tensors.tensors().size(), 1u);
  tensors.Close();
  EXPECT_THAT(tensors.AddState("v", GroupDtype::kInt64, 0, {}),
              Invalid("before the first NextStep"));
}

TEST(GroupTensorsTest, HasALimitOfTensors) {
  GroupTensors tensors;
  for (uint32_t i = 0; i < most::kGroupTensors; ++i) {
    ASSERT_THAT(tensors.AddState(std::to_string(i), GroupDtype::kBytes, 0, {}), IsOk());
  }
  EXPECT_THAT(tensors.AddState("more", GroupDtype::kBytes, 0, {}), Invalid("at most 65536"));
}

}  // namespace
}  // namespace muster::sdk
