#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/restart_policy.h"
#include "scaler/model/job_view.h"
#include "scaler/model/orders.h"
#include "scaler/simulate/described_spec.h"

namespace muster::scaler {

/// A job on virtual time, made from a description. Second by second, it looks as sensors would see
/// a job, and it carries out orders. It shows what policies do, but it does not forecast rates. A
/// minibatch costs its computing time and two round trips to the slowest server. A node without
/// enough CPU becomes slower in proportion. All workers wait while a server is away. A node above
/// its memory limit is killed. A node that ends is started again a second later.
///
/// Deterministic; a value with one owner; not thread-safe.
class DescribedJob {
 public:
  /// Requires: CheckDescribed(spec) is OK.
  explicit DescribedJob(const DescribedSpec& spec);

  /// Lets one second pass.
  void Tick();
  /// It has what ended and what was done since the last Tick().
  const JobView& view() const { return view_; }
  /// The time since the beginning.
  std::chrono::seconds elapsed() const { return elapsed_; }
  bool over() const { return view_.activity == Activity::kOver; }

  // These are orders that the keeper of nodes would carry out.
  void CarryOut(const ResizeNode& order);
  void CarryOut(const RestartNode& order);
  void CarryOut(const ScaleWorkers& order);
  void CarryOut(const FailJob& order);
  /// Other orders do nothing here. For example, there is no log for stacks.
  void CarryOut(const auto&) {}
  void Took(const ActionTaken& taken) { taken_.push_back(taken); }

  uint32_t kills_for_memory() const { return kills_for_memory_; }
  const std::string& failure() const { return failure_; }

 private:
  struct Node {
    double memory = 0;  // bytes
    double growth_per_minute = 0;
    double slow = 1;
    bool slow_stays = false;
    double quota = 0;  // that somebody else has set; 0 = none
    bool quota_stays = false;
    bool hangs = false;
    bool hangs_stay = false;
    double growth_of_life = 0;  // additional, per minute, in this life only
    TimePoint starts_at;        // when it starts again, while it is down
    TimePoint works_at;
    uint64_t progress_at_start = 0;
    bool excused = false;  // its end counts toward no crash loop
    // The following are of the second in progress.
    double wanted_cpus = 0;
    double held_back = 1;  // the share of the wanted CPU that it gets
    // The following are running totals of this life.
    double cpu = 0, throttled = 0, records = 0, minibatches = 0, computing = 0, waiting_pulls = 0,
           waiting_shards = 0, requests = 0, serving = 0, round_trip = 0;
  };

  const DescribedRole& RoleOf(const NodeView& node) const;
  void AddNode(NodeRole role, uint32_t number);
  void Start(NodeView* node);
  void Wait(NodeView* node);
  bool HasRoom(const NodeView& node) const;
  void End(NodeView* node, EndCause cause, std::string exit);
  void Befall(const Happening& happening);
  void StartDue();
  void ShareCpus();
  /// How many seconds a request to this server takes now.
  double ServiceTime(const NodeView& server) const;
  void Work();
  void WorkOne(NodeView* worker, bool servers_serve, double round_trip);
  void GrowMemory();
  void Sample(NodeView* node);
  Activity ActivityNow() const;

  const DescribedSpec spec_;
  JobView view_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, RestartPolicy> exits_;  // by node, over all its lives
  /// By node, the time until which there is no room for it.
  std::map<std::string, TimePoint> no_room_until_;
  std::chrono::seconds elapsed_{0};
  double requests_last_ = 0;  // of all workers in the last second
  double trained_ = 0;
  std::vector<NodeEnd> ends_;
  std::vector<ActionTaken> taken_;
  uint32_t kills_for_memory_ = 0;
  std::string failure_;
};

}  // namespace muster::scaler
