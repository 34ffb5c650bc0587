#include "master/service/snapshot_deletions.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "master/service/snapshot_files.h"

namespace muster {

SnapshotDeletions::SnapshotDeletions(ObjectStore* store, const Clock* clock, const Options& options)
    : store_(store), clock_(clock), options_(options), pending_(options.pending) {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "deletions");
}

SnapshotDeletions::~SnapshotDeletions() {
  Stop();
}

void SnapshotDeletions::Delete(const std::vector<std::string>& names) {
  MutexLock lock(&mutex_);
  const size_t forgotten = pending_.Add(names, clock_->Now());
  if (forgotten > 0 && !std::exchange(full_, true)) {
    Log(LogLevel::kWarning,
        "{} deletes too slowly: {} snapshot files wait. More of them stay until the next run",
        store_->place(), pending_.size());
  }
  changed_.SignalAll();
}

void SnapshotDeletions::Sweep(std::function<std::vector<std::string>()> find) {
  MutexLock lock(&mutex_);
  find_ = std::move(find);
  changed_.SignalAll();
}

void SnapshotDeletions::Hold(const std::vector<std::string>& names,
                             std::chrono::milliseconds time) {
  MutexLock lock(&mutex_);
  pending_.Hold(names, clock_->Now() + time);
}

void SnapshotDeletions::Stop() {
  {
    MutexLock lock(&mutex_);
    if (!stop_at_.has_value()) {
      stop_at_ = clock_->Now() + options_.stop_after;
      pending_.Hurry();
      changed_.SignalAll();
    }
  }
  if (thread_.joinable()) thread_.join();
}

std::optional<SnapshotDeletions::Work> SnapshotDeletions::Next() {
  MutexLock lock(&mutex_);
  while (true) {
    const TimePoint now = clock_->Now();
    if (stop_at_.has_value() && now >= *stop_at_) return std::nullopt;
    if (find_) return Work{std::exchange(find_, {}), {}};
    std::vector<std::string> names = pending_.Next(now);
    if (!names.empty()) return Work{{}, std::move(names)};
    full_ = full_ && pending_.size() > 0;
    if (stop_at_.has_value()) return std::nullopt;
    const std::optional<TimePoint> next = pending_.NextAt();
    if (next.has_value()) {
      changed_.WaitFor(
          &mutex_, std::max<std::chrono::nanoseconds>(*next - now, std::chrono::milliseconds(1)));
    } else {
      changed_.Wait(&mutex_);
    }
  }
}

void SnapshotDeletions::Run() {
  while (std::optional<Work> work = Next()) {
    if (work->find) {
      const std::vector<std::string> found = work->find();
      if (!found.empty()) {
        Log(LogLevel::kInfo, "deleting {} orphan snapshot files", found.size());
      }
      Delete(found);
      continue;
    }
    ObjectStore::Undeleted left = DeleteSnapshotFiles(store_, work->names);
    MutexLock lock(&mutex_);
    if (absl::IsUnavailable(left.why)) {
      pending_.Away(std::move(left.names), clock_->Now());
    } else {
      pending_.Answered();
    }
  }
  MutexLock lock(&mutex_);
  if (pending_.size() > 0) {
    Log(LogLevel::kInfo, "{} unused snapshot files stay until the next run", pending_.size());
  }
}

}  // namespace muster
