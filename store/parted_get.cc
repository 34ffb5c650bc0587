#include "store/parted_get.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace muster {
namespace {

class PartedGet {
 public:
  PartedGet(PartedRead* plan, int fd, uint32_t at_once, const TryPart& try_part, const Clock* clock)
      : plan_(plan), fd_(fd), at_once_(at_once), try_part_(try_part), clock_(clock) {}

  absl::Status Run() {
    Work();
    std::vector<std::thread> helpers;
    {
      MutexLock lock(&mutex_);
      ended_ = true;
      helpers.swap(helpers_);
    }
    for (std::thread& helper : helpers) helper.join();
    MutexLock lock(&mutex_);
    return plan_->failure();
  }

 private:
  void Work() {
    while (true) {
      const ReadTurn turn = Next();
      if (turn.kind == ReadTurn::Kind::kEnd) return;
      Make(turn.request);
    }
  }

  /// The next request, or the end.
  ReadTurn Next() {
    MutexLock lock(&mutex_);
    while (true) {
      ReadTurn turn = plan_->Next(clock_->Now());
      switch (turn.kind) {
        case ReadTurn::Kind::kPause:
          changed_.WaitFor(&mutex_, turn.pause);
          break;
        case ReadTurn::Kind::kIdle:
          changed_.Wait(&mutex_);
          break;
        case ReadTurn::Kind::kRequest:
        case ReadTurn::Kind::kEnd:
          return turn;
      }
    }
  }

  void Make(const PartRequest& part) {
    HttpRequest request;
    request.headers = part.headers;
    request.sink_fd = fd_;
    request.sink_offset = part.offset;
    request.on_head = [this, &part](const HttpAnswer& head) { return Began(part, head); };
    Tried tried;
    if (part.clear && ::ftruncate(fd_, 0) != 0) {
      tried.status = ErrnoStatus(errno, "the temporary file");
    } else {
      tried = try_part_(std::move(request));
    }
    MutexLock lock(&mutex_);
    if (tried.status.ok()) {
      plan_->Ended(part, tried.answer.sink_bytes, clock_->Now());
    } else {
      plan_->Failed(part, tried.answer.status, tried.status, AskedPause(tried.answer.retry_after),
                    clock_->Now(), tried.time);
    }
    changed_.SignalAll();
  }

  absl::StatusOr<uint64_t> Began(const PartRequest& part, const HttpAnswer& head) {
    MutexLock lock(&mutex_);
    absl::StatusOr<uint64_t> most = plan_->Began(
        part, {.http = head.status, .etag = head.etag, .content_range = head.content_range},
        clock_->Now());
    // The first answer shows that there are more parts.
    while (!ended_ && helpers_.size() + 1 < std::min<size_t>(at_once_, plan_->parts())) {
      helpers_.emplace_back([this] { Work(); });
    }
    changed_.SignalAll();
    return most;
  }

  PartedRead* const plan_;  // guarded by mutex_
  const int fd_;
  const uint32_t at_once_;
  const TryPart& try_part_;
  const Clock* const clock_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;  // no helper starts any more
  std::vector<std::thread> helpers_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status GetInParts(PartedRead* plan, int fd, uint32_t at_once, const TryPart& try_part,
                        const Clock* clock) {
  return PartedGet(plan, fd, at_once, try_part, clock).Run();
}

}  // namespace muster
