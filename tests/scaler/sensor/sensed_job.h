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
    status.set_state(v1::JOB_STATE_RUNNING);
    status.set_master_incarnation(1);
    v1::DatasetStatus* dataset = status.add_datasets();
    v1::EpochStatus* epoch = dataset->add_epochs();
    epoch->set_records_expected(1'000'000);
    epoch->set_shards_leased(2);
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
    v1::NodeStatus* node = status.add_nodes();
    node->set_name(name);
    node->set_role(ToString(role));
    Appear(name);
  }
  KeptNode& Kept(const std::string& name) {
    for (KeptNode& node : kept) {
      if (node.name == name) return node;
    }
    std::abort();
  }
  v1::NodeStatus& Status(const std::string& name) {
    for (v1::NodeStatus& node : *status.mutable_nodes()) {
      if (node.name() == name) return node;
    }
    std::abort();
  }
  v1::EpochStatus& Epoch() { return *status.mutable_datasets(0)->mutable_epochs(0); }

  /// The master hears the present process of the node.
  void Appear(const std::string& name) {
    v1::NodeStatus& node = Status(name);
    node.set_state("running");
    node.set_start(Kept(name).starts);
    node.set_incarnation(++last_incarnation_);
    node.clear_times();
    node.clear_counters();
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
    for (v1::NodeStatus& node : *status.mutable_nodes()) {
      if (node.state() != "running") continue;
      if (node.role() == "worker") {
        v1::WorkerTimes& times = *node.mutable_times();
        times.set_compute_us(times.compute_us() + 600'000);
        times.set_wait_pull_us(times.wait_pull_us() + 400'000);
        times.set_minibatches_finished(times.minibatches_finished() + 10);
        times.set_records_trained(times.records_trained() + 1'000);
        if (advances) Epoch().set_records_done(Epoch().records_done() + 1'000);
      } else {
        v1::ServerCounters& counters = *node.mutable_counters();
        counters.set_pulls(counters.pulls() + 20);
        counters.set_parts_applied(counters.parts_applied() + 20);
        counters.set_received_bytes(counters.received_bytes() + 40'000);
        counters.set_sent_bytes(counters.sent_bytes() + 80'000);
        counters.set_service_us(counters.service_us() + 4'000);
        node.set_peer_pulls(node.peer_pulls() + 20);
        node.set_peer_pull_us(node.peer_pull_us() + 10'000);
      }
    }
    if (answers) sensor.OnStatus(status, now);
    std::vector<NodeReading> round;
    for (const KeptNode& node : kept) {
      if (unread == node.name || node.state != KeptNode::State::kRunning) continue;
      NodeReading& reading = readings[node.name];
      reading.node = node.name;
      reading.start = node.starts;
      reading.usage.cpu += std::chrono::milliseconds(500);
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
  v1::JobStatus status;
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
