#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/random.h"
#include "host/found_node.h"
#include "host/messages.h"
#include "kubernetes/pods/node_pods.h"
#include "kubernetes/pods/pod_body.h"
#include "kubernetes/pods/pod_calls.h"
#include "kubernetes/pods/pod_facts.h"

namespace muster::kubernetes {

struct PodBookOptions {
  PodRun run;
  /// Spreads the tries of several clients.
  uint64_t seed = 0;
  /// If a pod is still there this long after the grace period of its deletion, it is lost with its
  /// node.
  std::chrono::seconds confirm_max{60};
  /// How long a living pod of an unknown start is kept. A scaler that died meanwhile has made it,
  /// and the same start may be ordered again.
  std::chrono::seconds unclaimed_max{60};
  /// Between tries that only a person can make succeed.
  std::chrono::seconds slow_retry{20};
};

/// Decides which calls make the pods of a run what its nodes should be, and what is reported about
/// them. It takes orders, what the watch shows, answers of calls, and the time. It returns calls
/// and reports.
///
/// Rules: A node has at most one living pod that this book has asked for, apart from pods that are
/// lost with their machine. Each start has one name, so if the answer of a call is lost, no second
/// pod is made. Each start gets one exit, and a pod that ran gets one start before it. Pods of
/// other runs are never reported, and pods of other jobs are never touched.
///
/// A pod belongs to this run if its labels say so, its name is that of its node and start, and the
/// run's Job owns it or has owned it. If only the owner is missing, the pod is a copy, or the Job
/// was deleted without its pods. Then the book asks whether the Job exists.
///
/// Pure, deterministic; not thread-safe.
class PodBook {
 public:
  explicit PodBook(PodBookOptions options) : options_(std::move(options)), random_(options_.seed) {}

  /// Takes the pods that earlier scalers have left. Call it once, before anything else. All of them
  /// count as alive. The exit of a dead one is reported, unless it is discarded.
  std::vector<FoundNode> Find(const std::vector<PodFacts>& pods, TimePoint now);
  /// Ends a found pod without a report. If it is dead, it is kept for its log.
  void Discard(const FoundNode& found, TimePoint now);
  /// The exit of a start that has left no pod.
  NodeExited DeathOf(const std::string& node, uint32_t start) const;

  /// The same as in NodeHost. Start() requires: not Has(node).
  void Start(const StartNode& order, TimePoint now);
  /// As in NodeHost. Kill() is a stop with the shortest grace period that a kubelet confirms.
  void Stop(const std::string& node, std::chrono::milliseconds timeout, TimePoint now);
  void Kill(const std::string& node, TimePoint now);
  /// kNotFound and kFailedPrecondition as in NodeHost, if it is known that the limits are refused.
  /// OK means that it is tried. If the limits are refused later, TakeNotes() says so.
  absl::Status SetLimits(const std::string& node, const Resources& limits, TimePoint now);
  void Release(const std::string& node, TimePoint now);
  bool Has(const std::string& node) const;
  bool IsRunning(const std::string& node) const;
  /// Deletes every pod of the run.
  void EndRun(TimePoint now);

  /// A pod exists, or has changed. Pods of other runs are ignored.
  void Seen(const PodFacts& pod, TimePoint now);
  /// A pod does not exist any more. `last` is its last state.
  void Gone(const PodFacts& last, TimePoint now);
  void Answered(const PodAnswer& answer, TimePoint now);
  /// Call it regularly, because only this tries again.
  void OnTime(TimePoint now);

  /// The calls since the last time, in order.
  std::vector<PodCall> TakeCalls();
  std::vector<HostReport> TakeReports();
  bool has_reports() const { return !reports_.empty(); }
  /// True if the Job of the run was deleted without its pods. Then nobody starts another scaler,
  /// and Kubernetes removes each pod that is still made.
  bool orphaned() const { return orphaned_; }
  /// Notes for the log.
  std::vector<std::string> TakeNotes();
  /// How many calls have no answer yet.
  size_t calls_in_flight() const { return in_flight_.size(); }
  /// After EndRun(): true if every pod is gone, or will be.
  bool IsClear() const;
  /// A node's pods. The pod of the newest start comes first.
  std::vector<PodFacts> PodsOfNode(const std::string& node) const;
  /// The pod of a running node. Null if the node does not run.
  const PodFacts* PodOf(const std::string& node) const;

 private:
  struct InFlight {
    std::string node;
    uint32_t start = 0;
    PodCall::Kind kind = PodCall::Kind::kCreate;
    std::chrono::seconds grace{0};
    Resources limits;
  };

  // pod_book.cc
  /// The pod as one of this run, or none. A pod that is known stays that of its node, even if its
  /// labels change.
  std::optional<PodFacts> AsOurs(const PodFacts& facts);
  Pod* FindPod(const std::string& uid);
  void AdvanceLook(TimePoint now);
  Life* LifeOf(const std::string& node);
  const Life* LifeOf(const std::string& node) const;
  /// Stores what was seen of a pod of this run.
  NodePods* Note(const PodFacts& facts, TimePoint now);
  void Advance(TimePoint now);
  void AdvanceStart(NodePods* node, Life* life, TimePoint now);
  /// Returns false while an older pod of the node lives, and has that pod deleted.
  bool IsPlaceFree(NodePods* node, const Life& life);
  void AdvancePod(const NodePods& node, Pod* pod, TimePoint now);
  /// True if the pod is that of the node's present life.
  static bool IsClaimed(const NodePods& node, const Pod& pod);
  void Interpret(NodePods* node, Life* life, TimePoint now);
  void AdvanceResize(Life* life, const PodFacts& facts, TimePoint now);
  /// Reports the result of limits that the API server has accepted.
  void TellResize(Life* life, const PodFacts& facts);
  void Exit(NodePods* node, Life* life, NodeExited exit);
  void TellHeld(Life* life, NodeWait wait, const std::string& reason);
  static void WantDeletion(Pod* pod, std::chrono::seconds grace);
  uint64_t Call(PodCall call, const std::string& node, uint32_t start);

  // pod_book_answers.cc
  void OnCreate(NodePods* node, Life* life, const PodAnswer& answer, TimePoint now);
  void OnLook(NodePods* node, Life* life, const PodAnswer& answer, TimePoint now);
  void OnNameTaken(Life* life, const PodFacts& other, TimePoint now);
  void OnLookForJob(const PodAnswer& answer, TimePoint now);
  void OnDelete(Pod* pod, const InFlight& call, const absl::Status& status, TimePoint now);
  void OnResize(Life* life, const InFlight& call, const absl::Status& status, TimePoint now);
  void Refused(Life* life, const absl::Status& status, TimePoint now);
  /// When to try again after an error.
  TimePoint RetryAt(Retry* retry, const absl::Status& status, TimePoint now);

  const PodBookOptions options_;
  Rng random_;
  std::map<std::string, NodePods> nodes_;
  std::map<uint64_t, InFlight> in_flight_;
  uint64_t last_call_ = 0;
  bool ended_ = false;
  bool orphaned_ = false;
  /// By UID, pods that may belong to this run although its Job does not own them.
  std::map<std::string, PodFacts> unowned_;
  uint64_t look_call_ = 0;  // in flight; 0: none
  TimePoint look_at_{};
  std::vector<PodCall> calls_;
  std::vector<HostReport> reports_;
  std::vector<std::string> notes_;
};

}  // namespace muster::kubernetes
