#include "collectives/internal/backend_thread.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <utility>

#include "base/checksum/crc32c.h"
#include "base/mutex.h"
#include "tests/collectives/group_fixture.h"

namespace muster::collectives::internal {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using testing::Answer;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::Reports;

/// One member alone: a sum is what `sum` makes of the data.
class ScriptedBackend final : public Backend {
 public:
  using Sum = std::function<absl::Status(std::span<std::byte> data, const AbortSignal& signal)>;
  explicit ScriptedBackend(Sum sum) : sum_(std::move(sum)) {}

  std::string_view name() const override { return "scripted"; }
  absl::StatusOr<std::vector<std::byte>> NewId() override {
    return std::vector<std::byte>(5, std::byte{7});
  }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(std::span<const std::byte> id, Place,
                                                        const AbortSignal* signal) override {
    connected_with.Put({id.begin(), id.end()});
    return std::make_unique<Scripted>(this, signal);
  }

  Reports<std::vector<std::byte>> connected_with;

 private:
  class Scripted final : public Communicator {
   public:
    Scripted(ScriptedBackend* backend, const AbortSignal* signal)
        : backend_(backend), signal_(signal) {}
    absl::StatusOr<std::span<std::byte>> Buffer(size_t bytes) override {
      buffer_.resize(bytes);
      return std::span(buffer_);
    }
    absl::Status Sum(SumType, std::span<std::byte> data) override {
      return backend_->sum_(data, *signal_);
    }

   private:
    ScriptedBackend* const backend_;
    const AbortSignal* const signal_;
    std::vector<std::byte> buffer_;
  };

  const Sum sum_;
};

class BackendThreadTest : public ::testing::Test {
 protected:
  ~BackendThreadTest() override {
    if (sums_ == nullptr) return;
    sums_->Abort();
    EXPECT_EQ(sums_->Finish(std::chrono::seconds(60)), true);
  }

  void Start(ScriptedBackend::Sum sum, uint32_t buckets) {
    backend_ = std::make_shared<ScriptedBackend>(std::move(sum));
    sums_ =
        BackendThread::Start({.backend = backend_,
                              .place = {},
                              .buckets = buckets,
                              .exchange =
                                  [this](std::span<const std::byte> in, std::span<std::byte> out,
                                         const std::function<void(absl::Status)>& done) {
                                    std::ranges::copy(in, out.begin());
                                    done(exchanged_);
                                  },
                              .post = [](const std::function<void()>& task) { task(); }});
  }
  void Add(uint64_t step, uint32_t bucket) {
    sums_->Add(StepNumber(step), bucket, SumType::kInt64, std::as_bytes(std::span(in_)),
               std::as_writable_bytes(std::span(out_)),
               [this](absl::Status status, uint32_t crc) { answers_.Put({status, crc}); });
  }

  absl::Status exchanged_;
  std::shared_ptr<ScriptedBackend> backend_;
  std::shared_ptr<BackendThread> sums_;
  std::vector<int64_t> in_ = {1, 2, 3};
  std::vector<int64_t> out_ = {0, 0, 0};
  Reports<Answer> answers_;
};

absl::Status Double(std::span<std::byte> data) {
  auto* const values = reinterpret_cast<int64_t*>(data.data());
  for (size_t i = 0; i < data.size() / sizeof(int64_t); ++i) values[i] *= 2;
  return absl::OkStatus();
}

TEST_F(BackendThreadTest, SumsAreWrittenBack) {
  Start([](std::span<std::byte> data, const AbortSignal&) { return Double(data); }, 1);
  EXPECT_THAT(backend_->connected_with.Await(1)[0],
              ElementsAre(std::byte{7}, std::byte{7}, std::byte{7}, std::byte{7}, std::byte{7}));
  for (uint64_t step = 1; step <= 3; ++step) {
    Add(step, 0);
    const Answer answer = answers_.Await(step).back();
    EXPECT_THAT(answer.status, IsOk());
    EXPECT_EQ(answer.crc, Crc32c(std::as_bytes(std::span(out_))));
  }
  EXPECT_THAT(out_, ElementsAre(2, 4, 6));
}

TEST_F(BackendThreadTest, BucketsAreAddedInTheOrderOfTheirNumbers) {
  Mutex mutex;
  std::vector<size_t> order;
  Start(
      [&](std::span<std::byte> data, const AbortSignal&) {
        MutexLock lock(&mutex);
        order.push_back(data.size());
        return absl::OkStatus();
      },
      3);
  const auto add = [&](uint64_t step, uint32_t bucket) {
    // The size shows the bucket.
    sums_->Add(StepNumber(step), bucket, SumType::kInt64,
               std::as_bytes(std::span(in_).first(bucket + 1)),
               std::as_writable_bytes(std::span(out_).first(bucket + 1)),
               [this](absl::Status status, uint32_t crc) { answers_.Put({status, crc}); });
  };
  for (const uint32_t bucket : {2, 1, 0}) add(4, bucket);
  answers_.Await(3);
  for (const uint32_t bucket : {1, 2, 0}) add(5, bucket);
  answers_.Await(6);
  MutexLock lock(&mutex);
  EXPECT_THAT(order, ElementsAre(8, 16, 24, 8, 16, 24));
}

TEST_F(BackendThreadTest, AnErrorIsTheAnswerToAllLaterSums) {
  Start([](std::span<std::byte>, const AbortSignal&) { return absl::InternalError("broken"); }, 2);
  Add(1, 0);
  Add(1, 1);
  for (const Answer& answer : answers_.Await(2)) {
    EXPECT_THAT(answer.status, StatusIs(absl::StatusCode::kInternal, "broken"));
  }
  Add(2, 0);
  EXPECT_THAT(answers_.Await(3)[2].status, StatusIs(absl::StatusCode::kInternal, "broken"));
  EXPECT_THAT(out_, Each(0));
}

TEST_F(BackendThreadTest, AnIdThatCannotBeExchangedIsAnError) {
  exchanged_ = absl::UnavailableError("no ring");
  Start([](std::span<std::byte>, const AbortSignal&) { return absl::OkStatus(); }, 1);
  Add(1, 0);
  EXPECT_THAT(answers_.Await(1)[0].status, StatusIs(absl::StatusCode::kUnavailable, "no ring"));
}

TEST_F(BackendThreadTest, AnAbortEndsTheSumInWorkAndThoseThatWait) {
  Reports<bool> begun;
  Start(
      [&](std::span<std::byte> data, const AbortSignal& signal) {
        begun.Put(true);
        while (!signal.aborted()) std::this_thread::yield();
        return Double(data);  // too late
      },
      2);
  Add(1, 1);
  Add(1, 0);
  begun.Await(1);
  sums_->Abort();
  for (const Answer& answer : answers_.Await(2)) {
    EXPECT_THAT(answer.status, StatusIs(absl::StatusCode::kAborted, ::testing::_));
  }
  EXPECT_EQ(sums_->Finish(std::chrono::seconds(60)), true);
  EXPECT_THAT(out_, Each(0)) << "memory is not touched after an abort";
  Add(2, 0);
  EXPECT_THAT(answers_.Await(3)[2].status, StatusIs(absl::StatusCode::kAborted, ::testing::_));
  sums_ = nullptr;
}

TEST_F(BackendThreadTest, ABackendThatHangsIsLeftToItself) {
  // Shared with the thread, which outlives the test's variables.
  const auto may_end = std::make_shared<std::atomic<bool>>(false);
  const auto has_ended = std::make_shared<Reports<bool>>();
  const auto begun = std::make_shared<Reports<bool>>();
  Start(
      [=](std::span<std::byte> data, const AbortSignal&) {
        begun->Put(true);
        while (!may_end->load()) std::this_thread::yield();
        has_ended->Put(true);
        return Double(data);
      },
      1);
  Add(1, 0);
  begun->Await(1);
  sums_->Abort();
  EXPECT_THAT(answers_.Await(1)[0].status, StatusIs(absl::StatusCode::kAborted, ::testing::_));
  EXPECT_FALSE(sums_->Finish(std::chrono::milliseconds(1)));
  const std::weak_ptr<BackendThread> left = std::exchange(sums_, nullptr);
  may_end->store(true);
  has_ended->Await(1);
  while (!left.expired()) std::this_thread::yield();
  EXPECT_THAT(out_, Each(0));
}

}  // namespace
}  // namespace muster::collectives::internal
