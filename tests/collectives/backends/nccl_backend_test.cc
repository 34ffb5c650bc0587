#include "collectives/backends/nccl_backend.h"

#include <gmock/gmock.h>

#include <bit>
#include <cstring>
#include <future>

#include "collectives/reducer.h"
#include "tests/collectives/backends/fake_gpu_library.h"
#include "tests/collectives/backends/signal.h"
#include "tests/collectives/group_fixture.h"

namespace muster::collectives {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using testing::Answer;
using testing::Bucket;
using testing::FakeGpuFault;
using testing::FakeGpuLibrary;
using testing::Group;
using ::testing::HasSubstr;
using testing::Signal;

using Connected = absl::StatusOr<std::unique_ptr<Communicator>>;

class NcclBackendTest : public ::testing::Test {
 protected:
  std::shared_ptr<Backend> Open() {
    NcclOptions options = FakeGpuLibrary::Options();
    options.error_patience = patience_;
    absl::StatusOr<std::shared_ptr<Backend>> backend = OpenNccl(options);
    MUSTER_CHECK_MSG(backend.ok(), Message(backend.status()));
    return *backend;
  }
  /// Members of one communicator, each connected by a thread of its own.
  std::vector<Connected> Connect(uint32_t members) {
    const std::shared_ptr<Backend> backend = Open();
    const std::vector<std::byte> id = backend->NewId().value();
    std::vector<std::future<Connected>> threads;
    for (uint32_t rank = 0; rank < members; ++rank) {
      threads.push_back(std::async(std::launch::async, [&, rank] {
        return backend->Connect(id, {rank, members}, &signal_);
      }));
    }
    std::vector<Connected> connected;
    for (std::future<Connected>& thread : threads) connected.push_back(thread.get());
    backends_.push_back(backend);  // it outlives its communicators
    return connected;
  }

  FakeGpuLibrary gpu_;
  std::chrono::milliseconds patience_{0};
  Signal signal_;
  int pinned_ = 0;
  std::vector<std::shared_ptr<Backend>> backends_;
};

template <typename T>
absl::Status SumOf(Communicator* communicator, SumType type, std::vector<T>* values) {
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(*values));
  MUSTER_ASSIGN_OR_RETURN(const std::span<std::byte> buffer, communicator->Buffer(bytes.size()));
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  MUSTER_RETURN_IF_ERROR(communicator->Sum(type, buffer));
  std::memcpy(bytes.data(), buffer.data(), bytes.size());
  return absl::OkStatus();
}

/// Every member's values are replaced by their sum.
template <typename T>
void SumAll(std::vector<Connected>* members, SumType type, std::vector<std::vector<T>>* values) {
  std::vector<std::future<absl::Status>> threads;
  for (size_t i = 0; i < members->size(); ++i) {
    threads.push_back(std::async(std::launch::async,
                                 [=] { return SumOf((*members)[i]->get(), type, &(*values)[i]); }));
  }
  for (std::future<absl::Status>& thread : threads) EXPECT_THAT(thread.get(), IsOk());
}

TEST_F(NcclBackendTest, SumsOfEachTypeAndSize) {
  for (const uint32_t count : {1, 3}) {
    std::vector<Connected> members = Connect(count);
    for (const Connected& member : members) ASSERT_THAT(member.status(), IsOk());
    // The last size is sent in several pieces, and a small one follows a large one.
    for (const size_t size : {size_t{1}, size_t{1000}, size_t{300'001}, size_t{7}}) {
      std::vector<std::vector<float>> floats(count, std::vector<float>(size, 0.5F));
      SumAll(&members, SumType::kFloat32, &floats);
      std::vector<std::vector<int64_t>> whole(count, std::vector<int64_t>(size, -3));
      SumAll(&members, SumType::kInt64, &whole);
      std::vector<std::vector<uint16_t>> halves(count, std::vector<uint16_t>(size, 0x3f80));  // 1
      SumAll(&members, SumType::kBfloat16, &halves);
      const auto number = static_cast<float>(count);
      for (uint32_t rank = 0; rank < count; ++rank) {
        EXPECT_EQ(floats[rank], std::vector<float>(size, 0.5F * number));
        EXPECT_EQ(whole[rank], std::vector<int64_t>(size, -3 * static_cast<int64_t>(count)));
        EXPECT_EQ(halves[rank], std::vector<uint16_t>(size, std::bit_cast<uint32_t>(number) >> 16));
      }
    }
  }
  backends_.clear();
  EXPECT_EQ(gpu_.communicators(), 0);
}

/// PyTorch captures its steps into graphs.
TEST_F(NcclBackendTest, AGraphThatIsBeingCapturedForbidsNothing) {
  const std::shared_ptr<Backend> backend = Open();
  gpu_.Set(FakeGpuFault::kCapturing);
  const auto sum = [&] {
    const std::vector<std::byte> id = backend->NewId().value();
    MUSTER_ASSIGN_OR_RETURN(const auto communicator, backend->Connect(id, {0, 1}, &signal_));
    std::vector<float> values = {1, 2};
    return SumOf(communicator.get(), SumType::kFloat32, &values);
  };
  EXPECT_THAT(std::async(std::launch::async, sum).get(), IsOk());
  EXPECT_THAT(backend->device()->NewMemory(64).status(), IsOk()) << "in the trainer's thread";
}

TEST_F(NcclBackendTest, TheNextAttemptHasTheMemoryOfTheOneBefore) {
  const std::shared_ptr<Backend> backend = Open();
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::vector<std::byte> id = backend->NewId().value();
    const Connected communicator = backend->Connect(id, {0, 1}, &signal_);
    ASSERT_THAT(communicator.status(), IsOk());
    std::vector<float> values(1'000, 1);
    EXPECT_THAT(SumOf(communicator->get(), SumType::kFloat32, &values), IsOk());
    if (attempt == 0) pinned_ = gpu_.pinned();
  }
  EXPECT_EQ(gpu_.pinned(), pinned_);
}

TEST_F(NcclBackendTest, AnErrorSaysWhatNcclSays) {
  gpu_.Set(FakeGpuFault::kConnectFails);
  EXPECT_THAT(Connect(1)[0],
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("NCCL does not connect the members: remote process exited"),
                             HasSubstr("NCCL_DEBUG=INFO"))));
  gpu_.Set(FakeGpuFault::kNone);
  std::vector<Connected> members = Connect(1);
  gpu_.Set(FakeGpuFault::kFailsLater);
  std::vector<float> values = {1};
  EXPECT_THAT(SumOf(members[0]->get(), SumType::kFloat32, &values),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("NCCL does not begin a sum: remote process exited or there was a "
                                 "network error: of the fake")));
}

TEST_F(NcclBackendTest, AGpuWithoutMemoryIsAnError) {
  std::vector<Connected> members = Connect(1);
  gpu_.Set(FakeGpuFault::kNoMemory);
  EXPECT_THAT((*members[0])->Buffer(1 << 20),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the GPU has no 1048576 bytes of memory: CUDA error 2 (out of "
                                 "memory)")));
}

TEST_F(NcclBackendTest, AWrongUseOfNcclIsNoFaultOfOthers) {
  patience_ = std::chrono::hours(1);
  gpu_.Set(FakeGpuFault::kInvalidUsage);
  for (const Connected& member : Connect(2)) {
    EXPECT_THAT(member, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("NCCL does not connect the members")));
  }
}

TEST_F(NcclBackendTest, AnAbortEndsAConnectAndASum) {
  const std::shared_ptr<Backend> backend = Open();
  const std::vector<std::byte> id = backend->NewId().value();
  // The other member never comes.
  auto connecting =
      std::async(std::launch::async, [&] { return backend->Connect(id, {0, 2}, &signal_); });
  while (gpu_.communicators() == 0) std::this_thread::yield();
  signal_.Set();
  EXPECT_THAT(connecting.get(), StatusIs(absl::StatusCode::kAborted, HasSubstr("over")));
  EXPECT_EQ(gpu_.communicators(), 0) << "aborted in NCCL, too";

  Signal other;
  Connected alone = backend->Connect(backend->NewId().value(), {0, 1}, &other);
  ASSERT_THAT(alone.status(), IsOk());
  gpu_.Set(FakeGpuFault::kSumHangs);
  auto summing = std::async(std::launch::async, [&] {
    std::vector<float> values = {1};
    return SumOf(alone->get(), SumType::kFloat32, &values);
  });
  other.Set();
  EXPECT_THAT(summing.get(), StatusIs(absl::StatusCode::kAborted, HasSubstr("over")));
}

TEST_F(NcclBackendTest, WhatCannotBeUsedIsSaidWhenItIsOpened) {
  NcclOptions options = FakeGpuLibrary::Options();
  options.device = 4;
  EXPECT_THAT(OpenNccl(options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "GPU 4 cannot be used: CUDA error 101 (invalid device ordinal)"));
  options = FakeGpuLibrary::Options();
  options.cuda = "libnone.so.1";
  EXPECT_THAT(OpenNccl(options), StatusIs(absl::StatusCode::kNotFound, HasSubstr("libnone.so.1")));
  options = FakeGpuLibrary::Options();
  options.library = "libm.so.6";
  EXPECT_THAT(OpenNccl(options),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("has no ncclGetVersion")));
  gpu_.SetVersion(21'307);
  EXPECT_THAT(OpenNccl(FakeGpuLibrary::Options()),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("is version 21307 of NCCL, at least 21400 is needed")));
}

// ---- with the members of a group ----

class NcclReducerTest : public NcclBackendTest {
 protected:
  void StartAll(Group* group, uint64_t attempt, std::chrono::milliseconds patience = {}) {
    for (uint32_t rank = 0; rank < group->size(); ++rank) {
      group->Start(rank, attempt, [&](ReducerOptions* options) {
        options->backend = Open();
        options->buckets = 2;
        if (patience != patience.zero()) options->backend_patience = patience;
      });
    }
  }
  using Buckets = std::vector<std::unique_ptr<Bucket<int64_t>>>;
  Buckets Give(Group* group, uint64_t step, uint32_t number, uint32_t members) {
    Buckets buckets;
    for (uint32_t rank = 0; rank < members; ++rank) {
      buckets.push_back(std::make_unique<Bucket<int64_t>>(1000));
      std::ranges::fill(buckets.back()->in, rank + 1);
      buckets.back()->Sum(&group->reducer(rank), GroupDtype::kFixedPoint, step, number);
    }
    return buckets;
  }
};

TEST_F(NcclReducerTest, TheRingTellsTheIdAndNcclAdds) {
  Group group(3);
  const std::vector<int64_t> sum(1000, 6);
  const std::vector<Connected> alone = Connect(1);
  const uint32_t digest = (*alone[0])->Digest(SumType::kInt64, std::as_bytes(std::span(sum)));
  for (uint64_t attempt = 1; attempt <= 2; ++attempt) {
    StartAll(&group, attempt);
    for (uint64_t step = 1; step <= 5; ++step) {
      const Buckets second = Give(&group, step, 1, 3);
      const Buckets first = Give(&group, step, 0, 3);
      for (const Buckets* buckets : {&first, &second}) {
        for (const auto& bucket : *buckets) {
          const Answer answer = bucket->answers.Await(1)[0];
          ASSERT_THAT(answer.status, IsOk());
          EXPECT_EQ(bucket->out, std::vector<int64_t>(1000, 6));
          EXPECT_EQ(answer.crc, digest);
        }
      }
    }
    EXPECT_EQ(gpu_.communicators(), 3 + 1);
  }
  for (uint32_t rank = 0; rank < 3; ++rank) group.Stop(rank);
  EXPECT_EQ(gpu_.communicators(), 0 + 1);
}

TEST_F(NcclReducerTest, ASumThatLacksAMemberEndsWithTheAttempt) {
  Group group(3);
  StartAll(&group, 1);
  for (const auto& bucket : Give(&group, 1, 0, 3)) {
    ASSERT_THAT(bucket->answers.Await(1)[0].status, IsOk());
  }
  const Buckets waiting = Give(&group, 1, 1, 2);
  group.Stop(2);
  group.Stop(0);
  group.Stop(1);
  for (const auto& bucket : waiting) {
    EXPECT_THAT(bucket->answers.Await(1)[0].status,
                StatusIs(absl::StatusCode::kAborted, ::testing::_));
  }
}

TEST_F(NcclReducerTest, AnErrorOfNcclIsTheAnswer) {
  Group group(2);
  StartAll(&group, 1);
  gpu_.Set(FakeGpuFault::kFailsLater);
  for (const auto& bucket : Give(&group, 1, 0, 2)) {
    EXPECT_THAT(bucket->answers.Await(1)[0].status,
                StatusIs(absl::StatusCode::kInternal, HasSubstr("NCCL does not")));
  }
}

TEST_F(NcclReducerTest, AnErrorThatADeathBringsAboutIsNoFailureOfTheSurvivor) {
  patience_ = std::chrono::hours(1);
  Group group(3);
  StartAll(&group, 1);
  for (const auto& bucket : Give(&group, 1, 0, 3)) {
    ASSERT_THAT(bucket->answers.Await(1)[0].status, IsOk());
  }
  // NCCL notices first that the connections to the dead member are broken.
  gpu_.Set(FakeGpuFault::kFailsLater);
  const Buckets waiting = Give(&group, 1, 1, 2);
  for (uint32_t rank = 0; rank < 3; ++rank) group.Stop(rank);
  for (const auto& bucket : waiting) {
    EXPECT_THAT(bucket->answers.Await(1)[0].status,
                StatusIs(absl::StatusCode::kAborted, ::testing::_));
  }
  EXPECT_EQ(gpu_.communicators(), 0);
}

TEST_F(NcclReducerTest, AnAbortThatHangsInNcclHangsNobody) {
  Group group(2);
  StartAll(&group, 1, std::chrono::milliseconds(1));
  gpu_.Set(FakeGpuFault::kAbortHangs);
  const Buckets waiting = Give(&group, 1, 0, 1);
  group.Stop(0);
  group.Stop(1);
  EXPECT_THAT(waiting[0]->answers.Await(1)[0].status,
              StatusIs(absl::StatusCode::kAborted, ::testing::_));
  gpu_.Set(FakeGpuFault::kNone);
  while (gpu_.communicators() > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace muster::collectives
