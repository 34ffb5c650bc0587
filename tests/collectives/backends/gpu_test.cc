#include "collectives/backends/gpu.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <thread>
#include <vector>

#include "base/random.h"
#include "collectives/backends/gpu_kernels.h"
#include "tests/collectives/backends/fake_gpu_library.h"
#include "tests/collectives/backends/signal.h"
#include "tests/collectives/group_fixture.h"

namespace muster::collectives {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using testing::Answer;
using testing::FakeGpuFault;
using testing::FakeGpuLibrary;
using testing::Group;
using ::testing::HasSubstr;
using testing::Reports;
using testing::Signal;

constexpr uint32_t kFractionBits = 10;

uint64_t AddressOf(const std::vector<float>& values) {
  return reinterpret_cast<uint64_t>(values.data());
}

class GpuTest : public ::testing::Test {
 protected:
  GpuTest() : backend_(OpenNccl(FakeGpuLibrary::Options()).value()) {}

  DeviceSum NewSum(SumType type, size_t elements) {
    Gpu& device = *backend_->device();
    return {device.NewBucket({type, elements, kFractionBits}).value(),
            device.NewMemory(elements * ElementBytes(type)).value(),
            device.NewMemory(elements * sizeof(float)).value()};
  }
  std::unique_ptr<Communicator> Alone() {
    return backend_->Connect(backend_->NewId().value(), {0, 1}, &signal_).value();
  }
  std::vector<float> Floats(const DeviceSum& sum) {
    std::vector<float> floats(sum.floats->bytes() / sizeof(float));
    EXPECT_THAT(
        backend_->device()->CopyToHost(*sum.floats, std::as_writable_bytes(std::span(floats))),
        IsOk());
    return floats;
  }
  std::vector<std::byte> Encoded(const DeviceSum& sum) {
    std::vector<std::byte> bytes(sum.encoded->bytes());
    EXPECT_THAT(backend_->device()->CopyToHost(*sum.encoded, bytes), IsOk());
    return bytes;
  }

  FakeGpuLibrary gpu_;
  Signal signal_;
  const std::shared_ptr<Backend> backend_;
};

TEST_F(GpuTest, EachTypeIsAddedAsItSays) {
  const std::vector<float> first = {1, -2, 0.0004F, 300};
  const std::vector<float> second = {2, 4, 0.0006F, 1};
  const auto communicator = Alone();
  const std::vector<std::pair<SumType, std::vector<float>>> expected = {
      {SumType::kInt64, {3, 2, 1.0F / 1024, 301}},
      {SumType::kFloat32, {3, 2, 0.0004F + 0.0006F, 301}},
      {SumType::kBfloat16, {3, 2, 0.00099945068359375F, 300}}};
  for (const auto& [type, floats] : expected) {
    const DeviceSum sum = NewSum(type, first.size());
    // What was there before is forgotten.
    ASSERT_THAT(sum.bucket->Add(AddressOf(second), nullptr, /*first=*/true), IsOk());
    ASSERT_THAT(sum.bucket->Add(AddressOf(first), nullptr, /*first=*/true), IsOk());
    ASSERT_THAT(sum.bucket->Add(AddressOf(second), nullptr, /*first=*/false), IsOk());
    const absl::StatusOr<uint32_t> digest = communicator->SumOnDevice(sum);
    ASSERT_THAT(digest.status(), IsOk());
    EXPECT_EQ(Floats(sum), floats);
    EXPECT_EQ(*digest, communicator->Digest(type, Encoded(sum)));
  }
}

TEST_F(GpuTest, ABucketWithoutGradientsIsZero) {
  const auto communicator = Alone();
  for (const SumType type : {SumType::kInt64, SumType::kFloat32, SumType::kBfloat16}) {
    const DeviceSum sum = NewSum(type, 3);
    const std::vector<float> bad(3, std::nanf(""));
    ASSERT_THAT(sum.bucket->Add(AddressOf(bad), nullptr, /*first=*/true), IsOk());
    ASSERT_THAT(sum.bucket->Clear(), IsOk());
    ASSERT_THAT(communicator->SumOnDevice(sum).status(), IsOk());
    EXPECT_EQ(Floats(sum), std::vector<float>(3, 0));
  }
}

TEST_F(GpuTest, TheFirstElementThatDoesNotFitIsNamed) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  const float limit = std::ldexp(1.0F, 50 - kFractionBits);
  for (const auto& [type, value] :
       std::vector<std::pair<SumType, float>>{{SumType::kInt64, limit},
                                              {SumType::kInt64, -limit},
                                              {SumType::kInt64, std::nanf("")},
                                              {SumType::kFloat32, infinity},
                                              {SumType::kFloat32, std::nanf("")},
                                              {SumType::kBfloat16, largest},
                                              {SumType::kBfloat16, -infinity}}) {
    std::vector<float> gradient(700, 1);
    gradient[611] = gradient[404] = value;
    const DeviceSum sum = NewSum(type, gradient.size());
    ASSERT_THAT(sum.bucket->Add(AddressOf(gradient), nullptr, /*first=*/true), IsOk());
    EXPECT_THAT(Alone()->SumOnDevice(sum),
                StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("element 404 is no number")));
  }
  // The largest that fits.
  std::vector<float> gradient = {std::nextafter(limit, 0.0F)};
  const DeviceSum sum = NewSum(SumType::kInt64, 1);
  ASSERT_THAT(sum.bucket->Add(AddressOf(gradient), nullptr, /*first=*/true), IsOk());
  EXPECT_THAT(Alone()->SumOnDevice(sum).status(), IsOk());
  EXPECT_EQ(Floats(sum), gradient);
}

TEST_F(GpuTest, MembersWithAndWithoutADeviceGetTheSameBits) {
  const std::vector<std::byte> id = backend_->NewId().value();
  const DeviceSum sum = NewSum(SumType::kInt64, 2);
  const std::vector<float> gradient = {0.5F, -3};
  ASSERT_THAT(sum.bucket->Add(AddressOf(gradient), nullptr, /*first=*/true), IsOk());
  auto other = std::async(std::launch::async, [&]() -> absl::StatusOr<uint32_t> {
    MUSTER_ASSIGN_OR_RETURN(const auto communicator, backend_->Connect(id, {1, 2}, &signal_));
    MUSTER_ASSIGN_OR_RETURN(const std::span<std::byte> buffer, communicator->Buffer(16));
    const int64_t values[] = {1024, 1024};
    std::memcpy(buffer.data(), values, sizeof(values));
    MUSTER_RETURN_IF_ERROR(communicator->Sum(SumType::kInt64, buffer));
    return communicator->Digest(SumType::kInt64, buffer);
  });
  const auto communicator = backend_->Connect(id, {0, 2}, &signal_);
  ASSERT_THAT(communicator.status(), IsOk());
  const absl::StatusOr<uint32_t> digest = (*communicator)->SumOnDevice(sum);
  ASSERT_THAT(digest.status(), IsOk());
  EXPECT_EQ(*digest, other.get().value());
  EXPECT_EQ(Floats(sum), (std::vector<float>{1.5F, -2}));
}

TEST_F(GpuTest, ErrorsOfTheDriverAreSaid) {
  DeviceSum sum = NewSum(SumType::kFloat32, 1);
  gpu_.Set(FakeGpuFault::kLaunchFails);
  const std::vector<float> gradient = {1};
  EXPECT_THAT(sum.bucket->Add(AddressOf(gradient), nullptr, /*first=*/true),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the GPU takes no work: CUDA error 719")));
  gpu_.Set(FakeGpuFault::kNoMemory);
  EXPECT_THAT(backend_->device()->NewBucket({SumType::kFloat32, 1 << 20, 0}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the GPU has no 4194304 bytes of memory")));
}

TEST_F(GpuTest, MemoryIsUsedAgain) {
  Gpu& device = *backend_->device();
  std::shared_ptr<GpuMemory> memory = device.NewMemory(123'456).value();
  const uint64_t address = memory->address();
  memory = nullptr;
  EXPECT_NE(device.NewMemory(123'457).value()->address(), address);
  EXPECT_EQ(device.NewMemory(123'456).value()->address(), address);
}

TEST_F(GpuTest, TheTextOfTheKernelsHasEachOfThem) {
  for (const char* name : {"add_fixed", "add_float", "to_bfloat16", "from_fixed", "from_bfloat16",
                           "from_float", "digest_16", "digest_32", "digest_64"}) {
    EXPECT_THAT(gpu::kKernels, HasSubstr(std::string(".visible .entry ") + name + "("));
  }
}

// ---- with the members of a group ----

class GpuReducerTest : public GpuTest {
 protected:
  void StartAll(Group* group) {
    for (uint32_t rank = 0; rank < group->size(); ++rank) {
      group->Start(rank, 1, [&](ReducerOptions* options) {
        options->backend = backend_;
        options->buckets = 1;
        options->on_device = true;
      });
    }
  }
  void Give(Group* group, uint32_t rank, DeviceSum sum, uint64_t step = 1) {
    group->reducer(rank).SumOnDevice(
        StepNumber(step), 0, std::move(sum),
        [this](absl::Status status, uint32_t digest) { answers_.Put({status, digest}); });
  }

  Reports<Answer> answers_;
};

TEST_F(GpuReducerTest, MembersAddAlsoIfThereIsOnlyOne) {
  for (const uint32_t members : {1, 3}) {
    Group group(members);
    StartAll(&group);
    std::vector<DeviceSum> sums;
    const std::vector<float> gradient = {2, 5};
    for (uint32_t rank = 0; rank < members; ++rank) {
      sums.push_back(NewSum(SumType::kFloat32, 2));
      ASSERT_THAT(sums.back().bucket->Add(AddressOf(gradient), nullptr, /*first=*/true), IsOk());
    }
    const size_t before = answers_.size();
    for (uint32_t rank = 0; rank < members; ++rank) Give(&group, rank, sums[rank]);
    const std::vector<Answer> answers = answers_.Await(before + members);
    const auto count = static_cast<float>(members);
    for (uint32_t rank = 0; rank < members; ++rank) {
      EXPECT_THAT(answers[before + rank].status, IsOk());
      EXPECT_EQ(answers[before + rank].crc, answers[before].crc);
      EXPECT_EQ(Floats(sums[rank]), (std::vector<float>{2 * count, 5 * count}));
    }
  }
}

TEST_F(GpuReducerTest, MemoryOfAnAbortedSumIsNotUsedBeforeItsCommunicatorEnds) {
  Group group(2);
  StartAll(&group);
  DeviceSum sum = NewSum(SumType::kFloat32, 1000);
  const uint64_t address = sum.encoded->address();
  const std::vector<float> gradient(1000, 1);
  ASSERT_THAT(sum.bucket->Add(AddressOf(gradient), nullptr, /*first=*/true), IsOk());
  gpu_.Set(FakeGpuFault::kAbortHangs);
  const int before = gpu_.sums();
  Give(&group, 0, std::move(sum));  // the other member never does
  while (gpu_.sums() == before) std::this_thread::yield();
  group.reducer(0).Abort();
  EXPECT_THAT(answers_.Await(1)[0].status, StatusIs(absl::StatusCode::kAborted, ::testing::_));
  std::vector<std::shared_ptr<GpuMemory>> others;
  for (int i = 0; i < 10; ++i) others.push_back(backend_->device()->NewMemory(4000).value());
  for (const auto& other : others) EXPECT_NE(other->address(), address);
  gpu_.Set(FakeGpuFault::kNone);
}

}  // namespace
}  // namespace muster::collectives
