#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "scaler/launcher/exit_status.h"
#include "scaler/launcher/restart_policy.h"
#include "scaler/node_role.h"
#include "sharding/slot_file.h"

/// What `muster run` decides, as a deterministic step: which node is started, killed or given up
/// when, and when the job is over. No process, socket or clock here.
namespace muster {

struct SupervisorOptions {
  uint32_t servers = 1;
  uint32_t workers = 1;
  RestartPolicy::Options restarts;
  /// The job file's: the master ends the leases of a drain after it, and the drain after twice it.
  std::chrono::milliseconds drain_timeout{30'000};
  /// What a drain may take beyond the master's phases: calls, and a master that is started again.
  std::chrono::milliseconds drain_slack{10'000};
  /// A master that answered before and is silent for so long is killed and started again.
  std::chrono::milliseconds master_silence_max{10'000};
  /// As above for a master that has not answered yet: it may have much to index.
  std::chrono::milliseconds master_start_max{300'000};
  /// A worker that the master calls lost is killed only after so long: it may be paused and come
  /// back.
  std::chrono::milliseconds worker_lost_max{60'000};
  /// How long workers may take to end by themselves after the job's end.
  std::chrono::milliseconds finish_wait{15'000};
  /// From SIGTERM to SIGKILL.
  std::chrono::milliseconds stop_timeout{10'000};
  /// How long a failure of ours (crash loop) waits for the master to take note.
  std::chrono::milliseconds cancel_wait{5'000};
};

/// The state of the job as the master tells it; the numbers are those of v1::JobState.
enum class JobPhase : uint8_t {
  kUnknown = 0,
  kRunning = 1,
  kDraining = 2,
  kDrained = 3,
  kSucceeded = 4,
  kFailed = 5,
  kCancelled = 6,
  kStopped = 7,  // in a state directory only, never said by a master
};
std::string ToString(JobPhase phase);  // "running", "drained", ...
inline bool IsTerminal(JobPhase phase) {
  return phase >= JobPhase::kDrained;
}

/// What the supervisor needs of the master's status.
struct MasterView {
  JobPhase phase = JobPhase::kUnknown;
  std::string reason;
  uint64_t done_seq = 0;
  uint64_t records_done = 0;  // over all datasets and epochs
  struct Node {
    std::string name;
    std::string state;  // starting, running, lost, exited
    uint64_t pid = 0;   // 0: not known
  };
  std::vector<Node> nodes;
};

// Events.
struct NodeStarted {
  std::string node;
  uint64_t pid = 0;
};
struct NodeExited {
  std::string node;
  uint64_t pid = 0;
  ExitStatus exit;
  std::optional<SlotRecord> slot;  // of a worker
  std::string last_words;          // of its log
};
/// The master answered a question that was asked at `asked_at`.
struct MasterAnswered {
  MasterView view;
  TimePoint asked_at;
};
struct DrainWanted {};  // the first Ctrl-C, or SIGTERM
struct StopWanted {};   // the second
struct Tick {};
using SupervisorEvent =
    std::variant<NodeStarted, NodeExited, MasterAnswered, DrainWanted, StopWanted, Tick>;

// Effects.
struct StartNode {
  std::string node;
  NodeRole role = NodeRole::kWorker;
  /// The how-manieth start of the node in this run, from 1; workers tell the master.
  uint32_t start = 1;
};
struct StopNode {
  std::string node;
  std::chrono::milliseconds timeout{0};
};
struct KillNode {
  std::string node;
  std::string why;
};
/// To be told to the master, in order, again and again until it is heard.
struct TellMaster {
  std::string node;
  NodeRole role = NodeRole::kWorker;
  uint64_t pid = 0;
  bool exited = false;  // else started
  ExitStatus exit;
  uint64_t computing_token = 0;
  uint32_t minibatches_started = 0;
  uint64_t incarnation = 0;  // of a worker's process; 0: it left none behind
  std::string text;
  uint32_t restarts = 0;
};
struct AskDrain {};
struct AskCancel {
  std::string reason;
};
/// For people: a line for the display.
struct Note {
  std::string text;
  /// To what the user has just asked for: shown even to those who want no progress.
  bool answer = false;
};
using SupervisorEffect =
    std::variant<StartNode, StopNode, KillNode, TellMaster, AskDrain, AskCancel, Note>;

/// How it all ended.
struct RunOutcome {
  enum class State : uint8_t {
    kSucceeded,
    kFailed,
    kDrained,
    kCancelled,
    kStopped,   // ended at once by the user, or the drain took too long; can be resumed
    kBadInput,  // the master refused the job or the data at its start
  };
  State state = State::kFailed;
  std::string reason;
};
std::string ToString(RunOutcome::State state);  // "succeeded", "stopped", ...
/// Of `muster run`: docs/cli.md lists them.
int ExitCode(RunOutcome::State state);

/// The supervisor of one run. Starts the master, then, when it answers, servers and workers; starts
/// again what ends; ends when the job does. A value with one owner; not thread-safe.
class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options);

  std::vector<SupervisorEffect> Step(const SupervisorEvent& event, TimePoint now);

  /// Set once every node is gone and nothing will be started any more.
  const std::optional<RunOutcome>& outcome() const { return outcome_; }
  /// The master answered at least once.
  bool answered() const { return answered_; }
  /// Starts beyond the first, of all nodes of the role.
  uint32_t restarts(NodeRole role) const;
  uint32_t running(NodeRole role) const;
  uint32_t wanted(NodeRole role) const;

 private:
  enum class Stage : uint8_t {
    kStarting,    // waiting for the master's first answer
    kTraining,    // everything is kept alive
    kDraining,    // workers that end are let go
    kFinishing,   // the job is over; workers may end by themselves
    kCollecting,  // workers are gone; one more status is wanted
    kStopping,    // everything must go
    kOver,
  };
  struct Node {
    NodeRole role = NodeRole::kWorker;
    RestartPolicy policy;
    enum class State : uint8_t { kWaiting, kRunning, kFinished } state = State::kWaiting;
    bool wanted = false;  // false before its time has come
    TimePoint start_at;
    TimePoint started_at;
    uint64_t pid = 0;
    uint32_t starts = 0;
    uint64_t progress_at_start = 0;
    bool seen_running = false;  // by the master, in this life
    bool told_to_end = false;   // by us, in this life
    std::optional<TimePoint> lost_since;
  };

  void On(const NodeStarted& event);
  void On(const NodeExited& event);
  void On(const MasterAnswered& event);
  void On(const DrainWanted& event);
  void On(const StopWanted& event);
  void On(const Tick&) {}

  void EnterDraining();
  /// This process stood still (a stopped terminal, a laptop that slept): nobody else is to blame
  /// for the silence.
  void ForgiveOwnPause(TimePoint now);

  void WatchNode(const MasterView::Node& seen, TimePoint asked_at);
  void WatchMaster();
  void Relaunch(const std::string& name, Node* node, const NodeExited& event);
  /// The job cannot go on: asks the master to end it as failed.
  void GiveUp(std::string reason);
  void Advance();
  void StartDueNodes();
  void KillOnce(const std::string& name, Node* node, std::string why);
  void StopRole(NodeRole role);
  void EnterStopping(RunOutcome outcome);
  bool AnyRunning(NodeRole role) const;
  void Emit(SupervisorEffect effect) { effects_.push_back(std::move(effect)); }

  SupervisorOptions options_;
  std::map<std::string, Node> nodes_;
  Stage stage_ = Stage::kStarting;
  std::optional<RunOutcome> pending_;  // what the outcome will be when all is gone
  std::optional<RunOutcome> outcome_;
  std::optional<std::string> failure_;  // ours: a crash loop
  bool answered_ = false;
  uint64_t progress_ = 0;  // grows with every step that the job is seen to make
  std::optional<MasterView> view_;
  TimePoint last_answer_;
  TimePoint asked_last_;  // a drain or a cancel
  std::optional<TimePoint> deadline_;
  TimePoint collecting_since_;
  // Of the step under way.
  TimePoint now_;
  std::vector<SupervisorEffect> effects_;
};

}  // namespace muster
