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

absl::Status WriteAt(int fd, std::string_view bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "cannot write the temporary file");
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return absl::OkStatus();
}

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

  /// Waits for the next request, or the end.
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
    uint64_t most = 0;
    uint64_t taken = 0;
    HttpRequest request;
    request.headers = part.headers;
    request.on_head = [&](const HttpAnswer& head) {
      MUSTER_ASSIGN_OR_RETURN(most, Began(part, head));
      return absl::OkStatus();
    };
    request.on_bytes = [&](std::string_view bytes) {
      if (taken + bytes.size() > most) {
        return absl::UnavailableError("the body is longer than its head says");
      }
      absl::Status written = WriteAt(fd_, bytes, part.offset + taken);
      taken += bytes.size();
      return written;
    };
    Tried tried;
    if (part.clear && ::ftruncate(fd_, 0) != 0) {
      tried.status = ErrnoStatus(errno, "the temporary file");
    } else {
      tried = try_part_(std::move(request));
    }
    MutexLock lock(&mutex_);
    if (tried.status.ok()) {
      plan_->Ended(part, taken, clock_->Now());
    } else {
      plan_->Failed(part, tried.answer.status, tried.status,
                    AskedPause(tried.answer.Header(kRetryAfter)), clock_->Now(), tried.time);
    }
    changed_.SignalAll();
  }

  absl::StatusOr<uint64_t> Began(const PartRequest& part, const HttpAnswer& head) {
    MutexLock lock(&mutex_);
    absl::StatusOr<uint64_t> most = plan_->Began(part,
                                                 {.http = head.status,
                                                  .etag = head.Header("ETag"),
                                                  .content_range = head.Header("Content-Range")},
                                                 clock_->Now());
    // The first answer may show that there are more parts.
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
