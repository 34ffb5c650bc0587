#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "master/core/group_commit.h"
#include "master/core/master_core.h"
#include "master/journal/journal.h"
#include "master/service/batch_failpoints.h"

namespace muster {

/// The one thread that owns core and journal. It takes all waiting requests as one batch of
/// GroupCommit, so requests that arrive during a sync share the next one.
///
/// Thread-safety: Post, Stop and failure may be called from any thread; steps and answers run on
/// the owner thread.
class OwnerLoop {
 public:
  struct Options {
    std::chrono::milliseconds tick{50};
    size_t queue_max = 20'000;
    size_t batch_max = 4'096;
    /// A master that has nothing to write looks this often whether the journal is still the job's.
    std::chrono::milliseconds look_every{1'000};
  };
  /// One request. Exactly one `answer` follows every accepted Post: the step's own status after the
  /// sync, or kUnavailable when the loop has stopped or the journal has failed.
  using Item = GroupCommit::Item;

  /// `clock` and `journal` outlive the loop. `delete_files` gets relative names of snapshot files
  /// that no manifest names any more, after the sync.
  OwnerLoop(std::unique_ptr<MasterCore> core, Journal* journal, const Clock* clock, Options options,
            std::function<void(const std::vector<std::string>&)> delete_files);
  ~OwnerLoop();

  /// Journals the start (the new incarnation), then starts the thread. Nothing may be posted
  /// before.
  absl::Status Start();
  /// If the loop is full, or has stopped, `answer` is called at once, with kResourceExhausted or
  /// kUnavailable.
  void Post(Item item);
  /// Joins the thread; waiting items are answered with kUnavailable. Idempotent.
  void Stop();
  /// Why the loop has ended by itself: the journal could not be written, or (kCancelled) another
  /// master has taken it over. Fatal for the process.
  std::optional<absl::Status> failure() const;

 private:
  void Run();
  bool RunBatch(std::vector<Item>* batch);
  absl::Status Write(const std::vector<Mutation>& mutations);
  absl::Status LookIfDue();
  StepTime Now() const { return {clock_->Now(), clock_->Wall()}; }

  const std::unique_ptr<MasterCore> core_;
  Journal* const journal_;
  const Clock* const clock_;
  const Options options_;
  const std::function<void(const std::vector<std::string>&)> delete_files_;
  GroupCommit commit_;          // of the owner thread
  BatchFailpoints failpoints_;  // of the owner thread
  TimePoint looked_at_;         // of the owner thread

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Item> queue_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = true;
  std::optional<absl::Status> failure_ MUSTER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster
