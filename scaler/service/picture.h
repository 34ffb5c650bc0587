#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/status/job_status.h"
#include "scaler/nodes/node_keeper.h"
#include "scaler/rest/job_api.h"
#include "scaler/sensor/job_sensor.h"
#include "scaler/sensor/partition_heat.h"
#include "scaler/sensor/process_meter.h"

namespace muster::scaler {

/// The job as the REST interface shows it, with the load of its partitions. A value.
struct Picture : rest::Picture {
  /// The rates of each partition.
  std::map<uint32_t, PartitionRate> partition_rates;
};

/// The sources of a picture.
struct PictureInput {
  std::string job_name;
  std::string job_id;
  /// The master's newest answer; absent if there is none yet.
  const JobStatus* status = nullptr;
  uint64_t seen_wall_us = 0;
  bool master_reachable = false;
  std::vector<KeptNode> kept;
  uint32_t workers_wanted = 0;
  uint64_t last_event_id = 0;
  uint64_t scaler_started_wall_us = 0;
  /// The same as NodeHost::limits_remark().
  std::string limits_remark;
  /// Measures master and scaler; absent if they are not measured.
  const ProcessMeter* own = nullptr;
};

/// Usage and rates come from `sensor`, and requests of the job file from `shape`. Policies stay
/// empty. Pure.
Picture DrawPicture(const PictureInput& input, const JobSensor& sensor, const JobShape& shape);

}  // namespace muster::scaler
