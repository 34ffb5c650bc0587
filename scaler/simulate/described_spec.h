#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "host/resources.h"

/// A job that people describe in order to try policies on it. docs/cli.md shows the same as a file.
namespace muster::scaler {

/// The properties of the nodes of one role.
struct DescribedRole {
  uint32_t replicas = 1;
  Resources limits;  // at the first start
  Resources max;     // 0 = budget and machine only
  uint64_t memory_start = uint64_t{100} << 20;
  /// The memory of a worker grows from its start. The memory of a server grows while the job
  /// trains, and a restart keeps it, as a restart keeps rows.
  uint64_t memory_growth_per_minute = 0;
  uint64_t memory_most = 0;  // it grows no further than this; 0 = without end
  /// Cores that a node uses while nothing holds it back. For a server, it is the most that it uses.
  double cpus = 0.8;
  /// The computing time of a worker's minibatch, or the service time of a server's request.
  std::chrono::microseconds time{10'000};
  std::chrono::seconds start{3};  // from its start until it works
};

/// Something that happens to one node.
struct Happening {
  /// Its work takes longer by this factor, but not because it lacks CPU.
  struct Slow {
    double factor = 1;
  };
  /// Somebody else limits it to this many cores.
  struct Quota {
    double cpus = 0;
  };
  struct Killed {};  // by the machine's owner
  struct Exits {
    int code = 1;
  };
  struct Hangs {};
  /// From now on, its memory grows faster by this much per minute.
  struct Grows {
    uint64_t bytes_per_minute = 0;
  };

  /// A cluster takes its place away, and has no room for it for this long.
  struct Preempted {
    std::chrono::seconds no_room{0};
  };

  std::chrono::seconds at{0};
  std::string node;  // "worker-1"
  std::variant<Killed, Slow, Quota, Exits, Hangs, Grows, Preempted> what;
  /// For Slow, Quota, Hangs and Grows: the cause is the machine or the data, so another start does
  /// not help.
  bool stays = false;
};

struct DescribedSpec {
  static constexpr uint32_t kReplicasMax = 64;
  static constexpr std::chrono::seconds kDurationMax{86'400};

  std::chrono::seconds duration{600};
  Resources machine{.cpus = 8, .memory_bytes = uint64_t{16} << 30};
  Resources budget;
  DescribedRole server{.replicas = 1, .cpus = 1, .time = std::chrono::microseconds(200)};
  DescribedRole worker{.replicas = 2};
  uint32_t workers_min = 0;  // 0 = as many as there are
  uint32_t workers_max = 0;
  /// The job is over after this many records; 0 = it continues for `duration`.
  uint64_t records = 0;
  uint32_t records_per_minibatch = 64;
  std::vector<Happening> happenings;  // in any order
};

/// Errors: InvalidArgument names values that do not fit together.
absl::Status CheckDescribed(const DescribedSpec& spec);

}  // namespace muster::scaler
