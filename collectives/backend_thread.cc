#include "collectives/internal/backend_thread.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"

namespace muster::collectives::internal {
namespace {

/// An id as it is exchanged: the number of its bytes, and the bytes. The sum of one id and of zeros
/// is the id.
struct IdBlock {
  int64_t bytes = 0;
  alignas(8) std::array<std::byte, Backend::kIdBytesMax> id{};
};

struct Pending {
  SumType type = SumType::kFloat32;
  std::span<const std::byte> in;
  std::span<std::byte> out;
  std::optional<DeviceSum> on_device;  // in place of `in` and `out`
  BackendThread::Done done;
};

/// The thread owns it, too. So it lives on if Finish leaves the thread to itself.
class Sums final : public BackendThread,
                   public AbortSignal,
                   public std::enable_shared_from_this<Sums> {
 public:
  explicit Sums(Options options) : options_(std::move(options)) {}

  void Run() {
    absl::Status status = Work();
    std::function<void()> ended;
    {
      MutexLock lock(&mutex_);
      communicator_ = nullptr;
      failure_ = std::move(status);
      for (auto& [key, pending] : std::exchange(pending_, {}))
        Answer(std::move(pending.done), failure_);
      ended_ = true;
      ended = std::move(on_ended_);
      changed_.SignalAll();
    }
    if (ended) ended();
  }
  void Own(std::thread thread) { thread_ = std::move(thread); }

  void Add(StepNumber step, uint32_t bucket, SumType type, std::span<const std::byte> in,
           std::span<std::byte> out, Done done) override {
    Give({step, bucket}, Pending{type, in, out, std::nullopt, std::move(done)});
  }
  void AddOnDevice(StepNumber step, uint32_t bucket, DeviceSum sum, Done done) override {
    Give({step, bucket}, Pending{.on_device = std::move(sum), .done = std::move(done)});
  }

  void Abort() override {
    MutexLock lock(&mutex_);
    if (aborted_.exchange(true)) return;
    if (communicator_ != nullptr) communicator_->Abort();
    // The sum in progress is answered here, too. After that, its thread copies nothing.
    if (in_work_ != nullptr) Answer(std::move(in_work_), AbortedError());
    in_work_ = nullptr;
    for (auto& [key, pending] : std::exchange(pending_, {})) {
      Answer(std::move(pending.done), AbortedError());
    }
    changed_.SignalAll();
  }

  void OnEnded(std::function<void()> ended) override {
    {
      MutexLock lock(&mutex_);
      if (!ended_) {
        on_ended_ = std::move(ended);
        return;
      }
    }
    ended();
  }

  bool Finish(std::chrono::milliseconds patience) override {
    {
      MutexLock lock(&mutex_);
      const auto end = std::chrono::steady_clock::now() + patience;
      while (!ended_) {
        const auto left = end - std::chrono::steady_clock::now();
        if (left <= left.zero()) break;
        changed_.WaitFor(&mutex_, left);
      }
      if (!ended_) {
        thread_.detach();
        return false;
      }
    }
    thread_.join();
    return true;
  }

  bool aborted() const override { return aborted_.load(std::memory_order_relaxed); }

 private:
  using Key = std::pair<StepNumber, uint32_t>;

  void Give(Key key, Pending sum) {
    MutexLock lock(&mutex_);
    if (aborted_.load() || !failure_.ok()) {
      return Answer(std::move(sum.done), aborted_.load() ? AbortedError() : failure_);
    }
    pending_.insert_or_assign(key, std::move(sum));
    changed_.SignalAll();
  }
  static absl::Status AbortedError() {
    return absl::AbortedError("the attempt of the group is over");
  }
  void Answer(Done done, absl::Status status, uint32_t digest = 0) {
    options_.post(
        [done = std::move(done), status = std::move(status), digest] { done(status, digest); });
  }

  /// Adds buckets until Abort, or until an error.
  absl::Status Work() {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::byte> id, ExchangeId());
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator,
                            options_.backend->Connect(id, options_.place, this));
    {
      MutexLock lock(&mutex_);
      if (aborted_.load()) return AbortedError();
      communicator_ = communicator.get();
    }
    absl::Status status;
    for (uint32_t next = 0; status.ok(); next = (next + 1) % options_.buckets) {
      status = AddNext(next, communicator.get());
    }
    MutexLock lock(&mutex_);
    communicator_ = nullptr;
    return status;
  }

  /// Returns the id that the member of rank 0 makes.
  absl::StatusOr<std::vector<std::byte>> ExchangeId() {
    IdBlock own;
    if (options_.place.rank == 0) {
      MUSTER_ASSIGN_OR_RETURN(const std::vector<std::byte> id, options_.backend->NewId());
      if (id.empty() || id.size() > own.id.size()) {
        return absl::InternalError(fmt::format("{} gave an id of {} bytes, not 1 to {}",
                                               options_.backend->name(), id.size(), own.id.size()));
      }
      own.bytes = static_cast<int64_t>(id.size());
      std::ranges::copy(id, own.id.begin());
    }
    // They are shared, because the exchange may still use them when this thread has given up.
    struct Exchanged {
      IdBlock own, sum;
    };
    const auto blocks = std::make_shared<Exchanged>();
    blocks->own = own;
    options_.exchange(std::as_bytes(std::span(&blocks->own, 1)),
                      std::as_writable_bytes(std::span(&blocks->sum, 1)),
                      [self = shared_from_this(), blocks](absl::Status status) {
                        MutexLock lock(&self->mutex_);
                        self->exchanged_ = std::move(status);
                        self->changed_.SignalAll();
                      });
    MutexLock lock(&mutex_);
    while (!aborted_.load() && !exchanged_.has_value()) changed_.Wait(&mutex_);
    if (aborted_.load()) return AbortedError();
    MUSTER_RETURN_IF_ERROR(*exchanged_);
    const IdBlock& sum = blocks->sum;
    if (sum.bytes < 1 || static_cast<size_t>(sum.bytes) > sum.id.size()) {
      return absl::InternalError("the members have no common id for a communicator");
    }
    return std::vector<std::byte>(sum.id.begin(), sum.id.begin() + sum.bytes);
  }

  /// Waits for bucket `number` of the oldest step, and adds it.
  absl::Status AddNext(uint32_t number, Communicator* communicator) {
    Pending sum;
    while (true) {
      MutexLock lock(&mutex_);
      if (aborted_.load()) return AbortedError();
      if (pending_.empty() || pending_.begin()->first.second != number) {
        changed_.Wait(&mutex_);
        continue;
      }
      sum = std::move(pending_.begin()->second);
      pending_.erase(pending_.begin());
      in_work_ = std::move(sum.done);
      break;
    }
    if (sum.on_device.has_value()) return Finish(communicator->SumOnDevice(*sum.on_device));
    if (sum.in.empty()) return Finish(0);
    const absl::StatusOr<std::span<std::byte>> buffer = communicator->Buffer(sum.in.size());
    if (!buffer.ok()) return Finish(buffer.status());
    {
      // Abort takes the mutex, so it waits for this copy. After it, the caller's memory is not
      // touched.
      MutexLock lock(&mutex_);
      if (aborted_.load()) return AbortedError();
      std::memcpy(buffer->data(), sum.in.data(), sum.in.size());
    }
    const absl::Status added = communicator->Sum(sum.type, *buffer);
    if (!added.ok()) return Finish(added);
    return Finish(communicator->Digest(sum.type, *buffer), *buffer, sum.out);
  }

  /// Answers the sum in progress, with an error or with its digest and the sum.
  absl::Status Finish(const absl::StatusOr<uint32_t>& digest, std::span<const std::byte> from = {},
                      std::span<std::byte> to = {}) {
    MutexLock lock(&mutex_);
    if (aborted_.load()) return AbortedError();
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
    Answer(std::move(in_work_), digest.status(), digest.ok() ? *digest : 0);
    in_work_ = nullptr;
    return digest.status();
  }

  const Options options_;
  std::thread thread_;
  std::atomic<bool> aborted_{false};  // changes under the mutex
  Mutex mutex_;
  CondVar changed_;
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
  std::function<void()> on_ended_ MUSTER_GUARDED_BY(mutex_);
  absl::Status failure_ MUSTER_GUARDED_BY(mutex_);
  std::optional<absl::Status> exchanged_ MUSTER_GUARDED_BY(mutex_);
  Communicator* communicator_ MUSTER_GUARDED_BY(mutex_) = nullptr;
  std::map<Key, Pending> pending_ MUSTER_GUARDED_BY(mutex_);
  Done in_work_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<BackendThread> BackendThread::Start(Options options) {
  auto sums = std::make_shared<Sums>(std::move(options));
  std::thread thread([sums] { sums->Run(); });
  pthread_setname_np(thread.native_handle(), "muster-backend");
  sums->Own(std::move(thread));
  return sums;
}

}  // namespace muster::collectives::internal
