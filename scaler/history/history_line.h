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

/// The form of a job's history on disk: each line is JSON. The first line of a file is its head.
/// Each other line can be read without the others, so a lost line costs only itself.
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
  std::optional<NodeSample> sample;  // none: there was none since the line before
};

/// Why a node has no place in the cluster at this moment. Nodes with a place have none of these.
struct HistoryWait {
  std::string node;
  NodeWait wait = NodeWait::kNone;
  TimePoint since;
  std::optional<Resources> placed_limits;
};

/// One view, without what the lines before it contain. Times are TimePoints that hold wall time
/// since the Unix epoch, because times of a scaler's clock mean nothing to a reader of the file.
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

/// The most bytes of a line with its line break. We write no longer line.
inline constexpr size_t kHistoryLineMax = 4 << 20;

std::string HistoryLine(const HistoryHead& head);
/// `wall` is now. `sampled_before` is when the line before was made: that line has all older
/// samples.
std::string HistoryLine(const JobView& view, WallTime wall, TimePoint sampled_before);

/// Errors: kDataLoss says what is wrong with the line.
absl::StatusOr<std::variant<HistoryHead, HistoryMoment>> ParseHistoryLine(std::string_view line);

}  // namespace muster::scaler
