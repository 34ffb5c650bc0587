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

/// A described job on virtual time, second by second, as sensors would see it; does what it is
/// ordered. Good for seeing what policies do, not for forecasting rates: a minibatch costs its
/// computing time and two round trips to the slowest server, a node without the CPU that it needs
/// is as much slower, everybody waits while a server is away, and who is over its memory limit is
/// killed. Nodes that end are started again, a second later.
///
/// Deterministic; a value with one owner; not thread-safe.
class DescribedJob {
 public:
  /// Requires: CheckDescribed(spec) is OK.
  explicit DescribedJob(const DescribedSpec& spec);

  /// One second goes by.
  void Tick();
  /// What ended and was taken since the last Tick is in it.
  const JobView& view() const { return view_; }
  /// Since the beginning.
  std::chrono::seconds elapsed() const { return elapsed_; }
  bool over() const { return view_.activity == Activity::kOver; }

  // What the keeper of nodes would carry out.
  void CarryOut(const ResizeNode& order);
  void CarryOut(const RestartNode& order);
  void CarryOut(const ScaleWorkers& order);
  void CarryOut(const FailJob& order);
  /// What does nothing here: stacks would be in its log.
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
    double quota = 0;  // of others; 0 = none
    bool quota_stays = false;
    bool hangs = false;
    bool hangs_stay = false;
    double growth_of_life = 0;  // per minute, on top
    TimePoint starts_at;        // while it is down
    TimePoint works_at;
    uint64_t progress_at_start = 0;
    bool excused = false;  // its end counts toward no crash loop
    // Of the second in progress.
    double wanted_cpus = 0;
    double held_back = 1;  // it gets so much of the CPU that it wants
    // Running totals of this life.
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
  /// What a request to this server takes now, in seconds.
  double ServiceTime(const NodeView& server) const;
  void Work();
  void WorkOne(NodeView* worker, bool servers_serve, double round_trip);
  void GrowMemory();
  void Sample(NodeView* node);
  Activity ActivityNow() const;

  const DescribedSpec spec_;
  JobView view_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, RestartPolicy> exits_;  // by node, of all its lives
  /// By node: until then there is no room for it.
  std::map<std::string, TimePoint> no_room_until_;
  std::chrono::seconds elapsed_{0};
  double requests_last_ = 0;  // of all workers, in the second before
  double trained_ = 0;
  std::vector<NodeEnd> ends_;
  std::vector<ActionTaken> taken_;
  uint32_t kills_for_memory_ = 0;
  std::string failure_;
};

}  // namespace muster::scaler
