#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scaler/sensor/job_sensor.h"

namespace muster::scaler {

/// A job of one server and two workers on virtual time, seen through a JobSensor: everybody is
/// heard, and does the same every second.
class SensedJob {
 public:
  explicit SensedJob(JobShape shape = {}) : sensor(std::move(shape)) {
    status.state = JobState::kRunning;
    status.master_incarnation = 1;
    status.datasets = {{.epochs = {{.records_expected = 1'000'000, .shards = {.leased = 2}}}}};
    Add(NodeRole::kServer, "ps-0");
    Add(NodeRole::kWorker, "worker-0");
    Add(NodeRole::kWorker, "worker-1");
  }

  void Add(NodeRole role, const std::string& name) {
    kept.push_back({.name = name,
                    .role = role,
                    .starts = 1,
                    .state = KeptNode::State::kRunning,
                    .pid = ++last_pid_,
                    .started_at = now});
    NodeStatus& node = status.nodes.emplace_back();
    node.name = name;
    node.role = ToString(role);
    Appear(name);
  }
  KeptNode& Kept(const std::string& name) {
    for (KeptNode& node : kept) {
      if (node.name == name) return node;
    }
    std::abort();
  }
  NodeStatus& Status(const std::string& name) {
    for (NodeStatus& node : status.nodes) {
      if (node.name == name) return node;
    }
    std::abort();
  }
  /// What workers saw of a server, which the master counts.
  PeerTimes& PeersOf(const std::string& server) { return Status(server).server->seen_by_workers; }
  EpochStatus& Epoch() { return status.datasets[0].epochs[0]; }

  /// The master hears the present process of the node.
  void Appear(const std::string& name) {
    NodeStatus& node = Status(name);
    node.state = NodeState::kRunning;
    node.start = Kept(name).starts;
    node.incarnation = ++last_incarnation_;
    if (node.role == ToString(NodeRole::kWorker)) {
      if (!node.worker.has_value()) node.worker.emplace();
      node.worker->times = {};
    } else {
      if (!node.server.has_value()) node.server.emplace();
      node.server->counters = {};
    }
  }
  void Restart(const std::string& name) {
    KeptNode& node = Kept(name);
    ++node.starts;
    node.pid = ++last_pid_;
    node.started_at = now;
    node.state = KeptNode::State::kRunning;
    readings[name] = {};
  }

  /// A second goes by: everybody that the master hears works.
  const JobView& Second() {
    now += std::chrono::seconds(1);
    for (NodeStatus& node : status.nodes) {
      if (node.state != NodeState::kRunning) continue;
      if (node.worker.has_value()) {
        WorkerTimes& times = node.worker->times;
        times.compute_us += 600'000;
        times.wait_pull_us += 400'000;
        times.minibatches_finished += 10;
        times.records_trained += 1'000;
        if (advances) Epoch().records_done += 1'000;
      } else {
        ServerCounters& counters = node.server->counters;
        counters.pulls += 20;
        counters.parts_applied += 20;
        counters.received_bytes += 40'000;
        counters.sent_bytes += 80'000;
        counters.service_us += 4'000;
        node.server->seen_by_workers.pulls += 20;
        node.server->seen_by_workers.pull_us += 10'000;
      }
    }
    if (answers) sensor.OnStatus(status, now);
    std::vector<NodeReading> round;
    for (const KeptNode& node : kept) {
      if (unread == node.name || node.state != KeptNode::State::kRunning) continue;
      NodeReading& reading = readings[node.name];
      reading.node = node.name;
      reading.start = node.starts;
      reading.usage.cpu =
          reading.usage.cpu.value_or(std::chrono::microseconds(0)) + std::chrono::milliseconds(500);
      reading.usage.memory_bytes = 100;
      round.push_back(reading);
    }
    wall += std::chrono::seconds(1);
    sensor.OnReading(std::move(round), now, wall);
    return sensor.View(kept, now);
  }
  const JobView& Seconds(int seconds) {
    for (int i = 1; i < seconds; ++i) Second();
    return Second();
  }

  TimePoint now = TimePoint(std::chrono::hours(1));
  WallTime wall = std::chrono::hours(1'000'000);
  JobStatus status;
  std::vector<KeptNode> kept;
  std::map<std::string, NodeReading> readings;
  bool answers = true;
  bool advances = true;
  std::string unread;  // the node whose readings fail
  JobSensor sensor;

 private:
  uint64_t last_pid_ = 100;
  uint64_t last_incarnation_ = 0;
};

}  // namespace muster::scaler
