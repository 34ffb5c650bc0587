#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "admin/master_link.h"
#include "base/clock.h"
#include "host/node_host.h"
#include "scaler/nodes/node_keeper.h"

namespace muster {

/// The place of one node in one run of a job.
struct JoinPlace {
  std::string node;
  NodeRole role = NodeRole::kWorker;
  std::string host;  // the name of this machine
  std::string run_id;
  uint32_t first_start = 1;
  scaler::KeeperOptions keeper;
};

/// Keeps the process of one place alive until the run is over for it, and reports to the master.
/// Belongs to one thread.
class JoinRunner {
 public:
  enum class End : uint8_t {
    kJobOver,   // or it was told to stop
    kLeft,      // drained, and not started again
    kCrashed,   // too often
    kBadInput,  // a server that refuses to start
    kNewRun,    // the job was run again, so this place does not exist any more
    kAway,      // the master was away for too long
  };
  struct Parts {
    JoinPlace place;
    NodeHost* host = nullptr;      // outlives the runner
    MasterLink* link = nullptr;    // the same
    const Clock* clock = nullptr;  // the same
    int signal_fd = -1;            // readable when a signal to end came
    std::chrono::seconds patience{600};
    /// Asks the master for the id of the present run. kUnavailable if it cannot be asked now;
    /// kFailedPrecondition if another `muster join` has taken the place.
    std::function<absl::StatusOr<std::string>()> ask_run;
  };
  explicit JoinRunner(Parts parts);

  End Run();
  /// The reason of kCrashed and kBadInput.
  const std::string& reason() const { return reason_; }

 private:
  void Wait();
  void ReadSignals();
  void Hear(const MasterLink::Answer& answer);
  void Carry(const scaler::KeeperEvent& event);
  void GiveUp(std::string reason);
  /// The end, if this step has brought it.
  std::optional<End> Ended() const;

  void Do(const StartNode& effect);
  void Do(const StopNode& effect) { parts_.host->Stop(effect.node, effect.timeout); }
  void Do(const KillNode& effect) { parts_.host->Kill(effect.node); }
  void Do(const scaler::DumpNode& effect);
  void Do(const scaler::SetLimits&) {}  // the operator of this machine sets limits
  void Do(const scaler::AskDrainNode& effect) {
    parts_.link->AskDrainNode(effect.node, effect.timeout);
  }
  void Do(const scaler::AskDrainJob&) {}  // the scaler does that
  void Do(const scaler::ReleaseNode& effect) { parts_.host->Release(effect.node); }
  void Do(const AskCancel& effect);
  void Do(const scaler::RestartDelayed& effect);
  void Do(const scaler::WorkerSentAway&) {}
  void Do(const Note& effect);
  void Do(TellMaster effect);

  const Parts parts_;
  scaler::NodeKeeper keeper_;
  std::deque<scaler::KeeperEvent> events_;
  std::map<uint64_t, std::string>
      untold_;  // exits that the master has not heard of, by the numbers of their reports
  std::optional<uint64_t> incarnation_;  // of the master that answered last
  bool place_unsure_ = false;  // since the node's last exit, another process may have the place
  TimePoint answered_at_;
  uint32_t signals_ = 0;
  std::optional<End> because_;  // why the keeper was told to stop
  std::string reason_;
};

}  // namespace muster
