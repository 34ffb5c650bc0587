#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "admin/master_link.h"
#include "base/clock.h"
#include "host/node_host.h"
#include "scaler/decision/decider.h"
#include "scaler/decision/human_orders.h"
#include "scaler/decision/log/event_log.h"
#include "scaler/decision/status_watch.h"
#include "scaler/history/job_history.h"
#include "scaler/nodes/node_keeper.h"
#include "scaler/sensor/job_sensor.h"
#include "scaler/service/call_queue.h"
#include "scaler/service/live_job_api.h"
#include "scaler/service/scaler_main.h"

namespace muster::scaler {

/// The deciding thread of a scaler. It passes what happens to keeper, sensor and decider, and
/// carries out what they decide. Belongs to one thread.
class ScalerLoop final : public OrderTaker {
 public:
  /// What the loop works with. Everything that is pointed to outlives the loop.
  struct Parts {
    const ScalerOptions* options = nullptr;
    const Clock* clock = nullptr;
    NodeHost* host = nullptr;
    std::unique_ptr<MasterLink> link;
    Adoption adoption;
    EventLog* events = nullptr;
    PictureBoard* board = nullptr;
    CallQueue* calls = nullptr;
    /// Called when there are new events.
    std::function<void()> notify;
  };
  explicit ScalerLoop(Parts parts);

  /// Runs until every node is gone, or until it is told to stop or to leave.
  KeeperOutcome Run();

  absl::StatusOr<rest::Event> Take(const Wish& wish) override;
  void FailOrder(uint64_t event_id, const std::string& why) override;
  rest::Samples GiveSamples(const rest::SampleQuery& query) override;

 private:
  void Beat();
  void Wait();
  /// Reads the end of the run, and signals.
  void ReadOrders();
  void Carry(const KeeperEvent& event);
  void CarryAll();
  void Sense(NodeExited* exited);
  void Hear(MasterLink::Answer answer);
  void SavePlan();
  /// Called once a second: it measures, decides, and draws the picture.
  void Round();
  void Measure();
  void MeasureOwn();
  void Decide();
  void CarryOrders(const std::vector<Ordered>& orders);
  void Draw();
  HumanFacts Facts() const;
  rest::Event Tell(rest::Event event);

  void Do(const StartNode& effect);
  void Do(const StopNode& effect) { host_->Stop(effect.node, effect.timeout); }
  void Do(const KillNode& effect);
  void Do(const DumpNode& effect);
  void Do(const SetLimits& effect);
  void Do(const AskDrainNode& effect) { link_->AskDrainNode(effect.node, effect.timeout); }
  void Do(const AskDrainJob& effect);
  void Do(const ReleaseNode& effect) { host_->Release(effect.node); }
  void Do(const AskCancel& effect);
  void Do(const RestartDelayed& effect);
  void Do(const WorkerSentAway& effect);
  void Do(const Note& effect);
  void Do(const TellMaster& effect);

  const ScalerOptions& options_;
  const Clock* const clock_;
  NodeHost* const host_;
  EventLog* const log_;
  PictureBoard* const board_;
  CallQueue* const calls_;
  const std::function<void()> notify_;
  const uint64_t started_wall_us_;
  const JobShape shape_;
  NodeKeeper keeper_;
  const std::unique_ptr<MasterLink> link_;
  JobSensor sensor_;
  ProcessMeter own_{JobSensor::Options().figure_window};  // for master, scaler, and joined nodes
  Decider decider_;
  StatusWatch watch_;
  JobHistory history_;
  PartitionHeat heat_;
  const JobView* view_ = nullptr;  // the sensor's newest view
  std::deque<KeeperEvent> events_;
  uint64_t carrying_ = 0;  // the event whose order is being carried out; 0: none
  std::map<uint64_t, std::string>
      untold_;  // exits that the master has not heard of, by the numbers of their reports
  std::optional<JobStatus> status_;
  TimePoint answered_at_;
  uint64_t answered_wall_us_ = 0;
  std::optional<TimePoint> round_at_;
  std::optional<Plan> saved_;
  bool save_failed_ = false;
  bool left_ = false;  // a signal ended the scaler; nodes live on
  bool ends_ = false;  // the run is over; signals have no effect any more
};

}  // namespace muster::scaler
