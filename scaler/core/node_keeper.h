#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "scaler/core/messages.h"
#include "scaler/core/plan.h"
#include "scaler/core/restart_policy.h"

/// What the scaler decides of workers and servers, as a deterministic step: which is started,
/// killed or given up when. No process, socket or clock here.
namespace muster::scaler {

struct KeeperOptions {
  RestartPolicy::Options restarts;
  /// A worker that the master calls lost is killed only after so long: it may be paused and come
  /// back.
  std::chrono::milliseconds worker_lost_max{60'000};
  /// How long workers may take to end by themselves after the job's end.
  std::chrono::milliseconds finish_wait{15'000};
  /// From SIGTERM to SIGKILL.
  std::chrono::milliseconds stop_timeout{10'000};
  /// How long the last exits wait for the master to hear of them.
  std::chrono::milliseconds report_wait{3'000};
};

// Event and effect of its own.
/// The master has heard of the node's exit.
struct ExitHeard {
  std::string node;
};
using KeeperEvent =
    std::variant<NodeStarted, NodeExited, ExitHeard, MasterAnswered, StopWanted, Tick>;
/// Nobody needs to remember the node's exit any more: its supervising process may go.
struct ReleaseNode {
  std::string node;
};
using KeeperEffect =
    std::variant<StartNode, StopNode, KillNode, TellMaster, ReleaseNode, AskCancel, Note>;

struct KeeperOutcome {
  enum class State : uint8_t {
    kJobOver,
    kStopped,   // told to end
    kBadInput,  // a server refused its input at its first start; starting it again is no use
  };
  State state = State::kJobOver;
  std::string reason;
};

/// Keeps the nodes of one run alive while the job trains, ends them when it is over.
///
/// An exit is told to the master first; when the master has heard, the decision about it is made,
/// durable in plan(), and only then is the exit released and the node started again: whoever takes
/// over at any moment finds either the exit itself or a plan that knows it. So plan() is to be
/// written before the effects of a step are carried out. Waiting for the master costs nothing: a
/// node gets nowhere without it.
///
/// A value with one owner; not thread-safe.
class NodeKeeper {
 public:
  /// Nodes that are kRunning in `plan` run: their NodeStarted or NodeExited comes, first or again.
  NodeKeeper(const KeeperOptions& options, const Plan& plan);

  std::vector<KeeperEffect> Step(const KeeperEvent& event, TimePoint now);

  /// What a successor needs to know.
  Plan plan() const;
  /// Set once every node is gone and nothing will be started any more.
  const std::optional<KeeperOutcome>& outcome() const { return outcome_; }

 private:
  enum class Stage : uint8_t {
    kWaiting,    // for the master's first answer
    kTraining,   // everything is kept alive
    kDraining,   // workers that end are let go
    kFailing,    // the master is told to end the job
    kFinishing,  // the job is over; workers may end by themselves, then servers go
    kStopping,   // everything must go
    kOver,
  };
  struct Node {
    NodePlan durable;
    RestartPolicy policy;
    /// kReporting: it is gone, and the master is being told.
    enum class State : uint8_t { kWaiting, kRunning, kReporting, kFinished };
    State state = State::kWaiting;
    std::optional<NodeExited> exit;  // of kReporting
    TimePoint start_at;
    TimePoint started_at;
    uint64_t pid = 0;
    uint64_t progress_at_start = 0;
    bool seen_running = false;  // by the master, in this life
    bool told_to_end = false;   // by us, in this life
    std::optional<TimePoint> lost_since;
  };

  void On(const NodeStarted& event);
  void On(const NodeExited& event);
  void On(const ExitHeard& event);
  void On(const MasterAnswered& event);
  void On(const StopWanted&);
  void On(const Tick&) {}

  void EnterPhase(const MasterView& view);
  /// This process stood still: nobody else is to blame for the silence.
  void ForgiveOwnPause(TimePoint now);
  void WatchNode(const MasterView::Node& seen, TimePoint asked_at);
  void Relaunch(const std::string& name, Node* node);
  void Finish(Node* node);
  /// The job cannot go on: asks the master to end it as failed.
  void GiveUp(std::string reason);
  void Advance();
  void AdvanceFinishing();
  void StartDueNodes();
  void StopRole(NodeRole role);
  void EnterStopping(KeeperOutcome outcome);
  bool Any(Node::State state) const;
  bool AnyRunning(NodeRole role) const;
  void Emit(KeeperEffect effect) { effects_.push_back(std::move(effect)); }

  KeeperOptions options_;
  std::string run_id_;
  uint32_t workers_ = 0;
  std::map<std::string, Node> nodes_;
  Stage stage_ = Stage::kWaiting;
  KeeperOutcome pending_;
  std::optional<KeeperOutcome> outcome_;
  std::optional<std::string> failure_;  // ours: a crash loop
  uint64_t progress_ = 0;               // grows with every step that the job is seen to make
  std::optional<MasterView> view_;
  TimePoint asked_last_;               // a cancel
  std::optional<TimePoint> deadline_;  // of workers after the job's end
  std::optional<TimePoint> gone_at_;   // every process
  // Of the step under way.
  TimePoint now_;
  std::vector<KeeperEffect> effects_;
};

}  // namespace muster::scaler
