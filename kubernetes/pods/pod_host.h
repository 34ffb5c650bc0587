#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/mutex.h"
#include "host/node_host.h"
#include "kubernetes/client/client.h"
#include "kubernetes/client/watcher.h"
#include "kubernetes/pods/call_threads.h"
#include "kubernetes/pods/pod_body.h"
#include "kubernetes/pods/pod_book.h"

namespace muster::kubernetes {

struct PodHostOptions {
  PodRun run;
  PodTemplates templates;
  /// Returns the usage of a process in the scaler's own pod (the master's or the scaler's).
  std::function<absl::StatusOr<NodeUsage>(uint64_t pid)> usage_of_process;
  uint64_t seed = 0;
  /// Called as a sign of life, at least once a second, while Find() or EndRun() waits, on their
  /// thread. It must not call the host.
  std::function<void()> beat;
  /// How many calls may run at the same time.
  size_t threads = 8;
  /// How long Find() waits for an API server that does not answer, and EndRun() for its answers.
  std::chrono::milliseconds find_patience{60'000};
  std::chrono::milliseconds end_patience{10'000};
  PodBookOptions book;
};

/// The nodes of a run as pods of a cluster. PodBook makes the decisions. A node's pod ends with the
/// run's Job, and not with the scaler.
///
/// The same as NodeHost, with these differences. Find() waits for the first list (kUnavailable also
/// if it stays forbidden), and EndRun() for the deletions; both waits are limited. ReadLog() waits
/// for the API server on the caller's thread. Offsets of logs are times (pod_log.h). If a limit is
/// refused after SetLimits() has returned, that is logged, and the next start has the limit.
class PodHost final : public NodeHost {
 public:
  /// `client` and `clock` must outlive this.
  PodHost(Client* client, const Clock* clock, PodHostOptions options);
  /// Ends running calls. The next host sees their results in the pods.
  ~PodHost() override;

  const std::string& limits_remark() const override { return limits_remark_; }
  Resources Capacity() const override { return {}; }
  std::optional<std::chrono::microseconds> Idle() const override { return std::nullopt; }

  std::string WhyAbandoned() const override;

  absl::StatusOr<std::vector<FoundNode>> Find() override;
  void Discard(const FoundNode& node) override;
  NodeExited DeathOf(const std::string& node, uint32_t start) const override;

  absl::Status Start(const StartNode& start) override;
  void Stop(const std::string& node, std::chrono::milliseconds timeout) override;
  void Kill(const std::string& node) override;
  absl::Status SetLimits(const std::string& node, const Resources& limits) override;
  /// kUnavailable, because a node in a pod tells the master itself what it uses.
  absl::StatusOr<NodeUsage> Usage(const std::string& node) override;
  absl::StatusOr<NodeUsage> UsageOfProcess(uint64_t pid) override;
  absl::Status DumpStacks(const std::string& node) override;
  void Release(const std::string& node) override;
  bool Has(const std::string& node) const override;

  int wake_fd() const override { return wake_.get(); }
  std::vector<HostReport> TakeReports() override;
  absl::StatusOr<LogPiece> ReadLog(const std::string& node,
                                   const LogQuestion& question) const override;
  void EndRun() override;

 private:
  /// Gives a sign of life, and then waits a short time for a change, at most until `end`.
  void WaitForChange(TimePoint end) MUSTER_REQUIRES(mutex_);
  ObjectPlace PlaceOf(const std::string& pod, std::string subresource = "") const;
  /// Changes the book, and then carries out what follows.
  void Change(const std::function<void(PodBook*, TimePoint now)>& change);
  void Follow() MUSTER_REQUIRES(mutex_);
  void OnChanges(const WatchCache::Changes& changes, const WatchCache::Objects& objects);
  // These run on a call's own thread.
  void Carry(const PodCall& call, const std::stop_token& stop);
  void LookForJob(const PodCall& call, const std::stop_token& stop);
  absl::StatusOr<nlohmann::json> Ask(const PodCall& call, const std::stop_token& stop);
  void CountRequests(TimePoint now) MUSTER_REQUIRES(mutex_);

  Client* const client_;
  const Clock* const clock_;
  const PodHostOptions options_;
  const std::string limits_remark_;
  const WakeFd wake_;

  mutable Mutex mutex_;
  CondVar changed_;
  PodBook book_ MUSTER_GUARDED_BY(mutex_);
  std::optional<std::vector<FoundNode>> found_ MUSTER_GUARDED_BY(mutex_);
  absl::Status unreachable_ MUSTER_GUARDED_BY(mutex_);
  TimePoint counted_at_ MUSTER_GUARDED_BY(mutex_){};
  uint64_t counted_ MUSTER_GUARDED_BY(mutex_) = 0;
  /// Set by Find(), before the first call.
  std::unique_ptr<Watcher> watcher_;
  /// Null while the host ends.
  std::unique_ptr<CallThreads> threads_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kubernetes
