#include "scaler/service/picture.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "proto/messages/node_state.h"

namespace muster::scaler {
namespace {

void ApplyKept(const KeptNode& kept, rest::Node* node) {
  // The keeper learns before the master that a process began or ended.
  const bool same_life = kept.has_life() && node->start == kept.starts;
  std::optional<MasterSays> master;
  if (same_life) master = MasterSays{.state = node->state, .drain = node->drain};
  node->state = NodeStateOf(kept, master, StateReader::kPeople);
  if (kept.state == KeptNode::State::kDraining && node->drain == DrainState::kNone) {
    node->drain = DrainState::kDraining;
  }
  node->wait = kept.wait;
  node->wait_reason = kept.wait_reason;
  node->role = ToString(kept.role);
  if (!same_life) {
    // Figures of an earlier life must not be shown as those of this one.
    node->pid = kept.pid;
    node->worker.reset();
    node->server.reset();
    node->heartbeat_age_ms.reset();
  }
  node->start = kept.starts;
  node->restarts = kept.starts == 0 ? 0 : kept.starts - 1;
  node->limits = kept.limits;
}

rest::Job DrawJob(const PictureInput& input, const JobSensor& sensor, const JobShape& shape) {
  rest::Job job{input.status != nullptr ? JobSummary(*input.status) : JobSummary()};
  job.name = input.job_name;
  job.id = input.job_id;
  job.seen_wall_us = input.seen_wall_us;
  job.master_reachable = input.master_reachable;
  job.last_event_id = input.last_event_id;
  job.scaler_started_wall_us = input.scaler_started_wall_us;
  job.workers_wanted = input.workers_wanted;
  if (shape.workers_min < shape.workers_max) {
    job.workers_min = shape.workers_min;
    job.workers_max = shape.workers_max;
  }
  job.limits_remark = input.limits_remark;
  job.snapshot_interval_s = std::chrono::duration<double>(shape.snapshot_interval).count();
  Progress& progress = job.progress;
  progress.records_per_second = sensor.Rate();
  const double rate = sensor.SteadyRate();
  const bool open = input.status != nullptr &&
                    std::ranges::any_of(input.status->datasets, [](const DatasetStatus& dataset) {
                      return dataset.stream.has_value() && dataset.stream->open;
                    });
  if (!open && progress.records_expected > 0 && rate > 0) {
    const uint64_t left =
        progress.records_expected - std::min(progress.records_done, progress.records_expected);
    progress.remaining_seconds = static_cast<double>(left) / rate;
  }
  return job;
}

}  // namespace

Picture DrawPicture(const PictureInput& input, const JobSensor& sensor, const JobShape& shape) {
  Picture picture;
  picture.job = DrawJob(input, sensor, shape);
  std::map<std::string, rest::Node> nodes;
  if (input.status != nullptr) {
    picture.datasets.datasets = input.status->datasets;
    for (const NodeStatus& status : input.status->nodes) {
      rest::Node& node = nodes[status.name] = rest::Node{status};
      if (input.own != nullptr) node.usage = input.own->UsageOf(status.name, status.pid);
    }
  }
  for (const KeptNode& kept : input.kept) {
    rest::Node& node = nodes[kept.name];
    node.name = kept.name;
    ApplyKept(kept, &node);
    const auto role = shape.roles.find(kept.role);
    if (role != shape.roles.end()) node.requested = role->second.requested;
    node.usage = sensor.UsageOf(kept.name);
    if (node.worker.has_value()) node.records_per_second = sensor.RateOf(kept.name);
  }
  for (auto& [name, node] : nodes) picture.nodes.nodes.push_back(std::move(node));
  return picture;
}

}  // namespace muster::scaler
