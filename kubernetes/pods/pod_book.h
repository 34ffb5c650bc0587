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
  /// After the grace of a deletion: a pod that is still there then is lost with its node.
  std::chrono::seconds confirm_max{60};
  /// A living pod of an unknown start: made by a scaler that died meanwhile, and the same start may
  /// be ordered again.
  std::chrono::seconds unclaimed_max{60};
  /// Between tries that only a person can make succeed.
  std::chrono::seconds slow_retry{20};
};

/// Decides which calls make the pods of a run what its nodes should be, and what is reported of
/// them. Orders, what the watch shows, answers of calls and time go in; calls and reports come out.
///
/// Rules. A node has at most one living pod that this book has asked for, except for pods that are
/// lost with their machine. Each start has one name, so a call whose answer is lost makes no second
/// pod. Each start gets one exit, and a pod that ran gets one start before it. Pods of other runs
/// are never reported, and pods that are not of this job are never touched.
///
/// A pod is of this run if its labels say so, its name is that of its node and start, and the run's
/// Job owns it, or has owned it. A pod that lacks only the owner is a copy, or the Job was deleted
/// without its pods: then the book asks if the Job is there.
///
/// Pure, deterministic; not thread-safe.
class PodBook {
 public:
  explicit PodBook(PodBookOptions options) : options_(std::move(options)), random_(options_.seed) {}

  /// The pods that earlier scalers left, once and first. All of them count as alive: the exit of a
  /// dead one is reported, unless it is discarded.
  std::vector<FoundNode> Find(const std::vector<PodFacts>& pods, TimePoint now);
  /// Ends a found pod, without a report. A dead one is kept for its log.
  void Discard(const FoundNode& found, TimePoint now);
  /// The exit of a start that left no pod.
  NodeExited DeathOf(const std::string& node, uint32_t start) const;

  /// As NodeHost. Start() requires: not Has(node).
  void Start(const StartNode& order, TimePoint now);
  /// kill: with the shortest grace that a kubelet confirms.
  void Stop(const std::string& node, std::chrono::milliseconds timeout, TimePoint now);
  void Kill(const std::string& node, TimePoint now);
  /// kNotFound, kFailedPrecondition as NodeHost: known to be refused. OK: it is tried, and note()
  /// tells if it was refused after all.
  absl::Status SetLimits(const std::string& node, const Resources& limits, TimePoint now);
  void Release(const std::string& node, TimePoint now);
  bool Has(const std::string& node) const;
  bool IsRunning(const std::string& node) const;
  /// Deletes every pod of the run.
  void EndRun(TimePoint now);

  /// A pod of this run is there, or has changed. Others are passed over.
  void Seen(const PodFacts& pod, TimePoint now);
  /// It is there no more; `last` is its last state.
  void Gone(const PodFacts& last, TimePoint now);
  void Answered(const PodAnswer& answer, TimePoint now);
  /// Call it regularly: it is what tries again.
  void OnTime(TimePoint now);

  /// Since the last call, in order.
  std::vector<PodCall> TakeCalls();
  std::vector<HostReport> TakeReports();
  bool has_reports() const { return !reports_.empty(); }
  /// The Job of the run was deleted without its pods, so nobody starts another scaler, and
  /// Kubernetes takes away each pod that is still made.
  bool orphaned() const { return orphaned_; }
  /// For the log.
  std::vector<std::string> TakeNotes();
  /// Calls that are not answered yet.
  size_t calls_in_flight() const { return in_flight_.size(); }
  /// After EndRun(): every pod is gone, or will be.
  bool IsClear() const;
  /// A node's pods, of the newest start first.
  std::vector<PodFacts> PodsOfNode(const std::string& node) const;
  /// The pod of a running node; null if it is not running.
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
  /// As it is known: labels that change later do not make it another node's. None: it is not of
  /// this run.
  std::optional<PodFacts> AsOurs(const PodFacts& facts);
  Pod* FindPod(const std::string& uid);
  void AdvanceLook(TimePoint now);
  Life* LifeOf(const std::string& node);
  const Life* LifeOf(const std::string& node) const;
  /// Keeps what is seen of a pod of this run.
  NodePods* Note(const PodFacts& facts, TimePoint now);
  void Advance(TimePoint now);
  void AdvanceStart(NodePods* node, Life* life, TimePoint now);
  /// False while an older pod of the node lives: then it is being deleted.
  bool IsPlaceFree(NodePods* node, const Life& life);
  void AdvancePod(const NodePods& node, Pod* pod, TimePoint now);
  /// Says whether the pod is what the node's life is about.
  static bool IsClaimed(const NodePods& node, const Pod& pod);
  void Interpret(NodePods* node, Life* life, TimePoint now);
  void AdvanceResize(Life* life, const PodFacts& facts, TimePoint now);
  /// Reports what became of limits that the API server has taken.
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
  /// Pods that may be this run's, but that its Job does not own; by UID.
  std::map<std::string, PodFacts> unowned_;
  uint64_t look_call_ = 0;  // in flight; 0: none
  TimePoint look_at_{};
  std::vector<PodCall> calls_;
  std::vector<HostReport> reports_;
  std::vector<std::string> notes_;
};

}  // namespace muster::kubernetes
