#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "scaler/model/job_view.h"
#include "scaler/sensor/job_sensor.h"

/// The form of a job's history on disk: a line of JSON each. The first line of a file is a head;
/// each of the others stands for itself, so that a lost one takes nothing else with it.
namespace muster::scaler {

/// What does not change within a file.
struct HistoryHead {
  std::string run_id;  // of `muster run`
  std::string job;
  JobShape shape;
};

/// A node at one moment.
struct HistoryNode {
  std::string name;
  NodeRole role = NodeRole::kWorker;
  uint32_t start = 0;
  NodeState state = NodeState::kPlanned;
  TimePoint started_at;
  Resources limits;
  std::optional<NodeSample> sample;  // nothing: none since the line before
};

/// Why a node of a moment has no place in the cluster. Nodes that have one have none of these.
struct HistoryWait {
  std::string node;
  NodeWait wait = NodeWait::kNone;
  TimePoint since;
  std::optional<Resources> placed_limits;
};

/// A view without what is in the lines before it. Times are wall time since the Unix epoch as
/// TimePoints: those of a scaler's clock mean nothing to who reads the file.
struct HistoryMoment {
  TimePoint at;
  Activity activity = Activity::kStarting;
  bool master_heard = true;
  uint64_t records_trained = 0;
  uint64_t records_left = 0;
  std::optional<uint64_t> backlog_records;
  std::optional<double> idle_cpus;
  std::vector<HistoryNode> nodes;
  std::vector<HistoryWait> waits;
  std::vector<NodeEnd> ends;
  std::vector<ActionTaken> taken;
};

/// Of a line, its end included; what is longer is not ours.
inline constexpr size_t kHistoryLineMax = 4 << 20;

std::string HistoryLine(const HistoryHead& head);
/// `wall` is now, `sampled_before` when the line before was made: older samples are in it.
std::string HistoryLine(const JobView& view, WallTime wall, TimePoint sampled_before);

/// kDataLoss says what is wrong with it.
absl::StatusOr<std::variant<HistoryHead, HistoryMoment>> ParseHistoryLine(std::string_view line);

}  // namespace muster::scaler
