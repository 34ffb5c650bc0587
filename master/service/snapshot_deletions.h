#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "master/service/pending_deletions.h"
#include "store/object_store.h"

namespace muster {

/// Deletes snapshot files on a thread of its own, so that nobody waits for a slow store. What still
/// waits when the process is killed stays until the next run. Thread-safe.
class SnapshotDeletions {
 public:
  struct Options {
    PendingDeletions::Options pending;
    /// How long Stop goes on to delete what waits.
    std::chrono::milliseconds stop_after{3'000};
  };
  /// `store` and `clock` outlive it.
  SnapshotDeletions(ObjectStore* store, const Clock* clock) : SnapshotDeletions(store, clock, {}) {}
  SnapshotDeletions(ObjectStore* store, const Clock* clock, const Options& options);
  /// Stops.
  ~SnapshotDeletions();
  SnapshotDeletions(const SnapshotDeletions&) = delete;
  SnapshotDeletions& operator=(const SnapshotDeletions&) = delete;

  /// Deletes them soon. Does not wait.
  void Delete(const std::vector<std::string>& names);
  /// Runs `find` on the thread, and deletes the files that it returns. Does not wait. At most once.
  void Sweep(std::function<std::vector<std::string>()> find);
  /// Somebody reads these files for so long: they stay, even if they are to be deleted.
  void Hold(const std::vector<std::string>& names, std::chrono::milliseconds time);
  /// Deletes what waits as long as it may, then joins. Idempotent.
  void Stop();

 private:
  void Run();
  /// The next work of the thread.
  struct Work {
    std::function<std::vector<std::string>()> find;
    std::vector<std::string> names;
  };
  /// Waits for work; none: the end.
  std::optional<Work> Next();

  ObjectStore* const store_;
  const Clock* const clock_;
  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  PendingDeletions pending_ MUSTER_GUARDED_BY(mutex_);
  std::function<std::vector<std::string>()> find_ MUSTER_GUARDED_BY(mutex_);
  std::optional<TimePoint> stop_at_ MUSTER_GUARDED_BY(mutex_);
  bool full_ MUSTER_GUARDED_BY(mutex_) = false;  // files were forgotten
  std::thread thread_;
};

}  // namespace muster
