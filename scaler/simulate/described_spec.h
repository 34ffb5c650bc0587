#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "host/resources.h"

/// A job as people describe it, to try policies on. docs/cli.md has the file that says the same.
namespace muster::scaler {

/// What the nodes of a role are like.
struct DescribedRole {
  uint32_t replicas = 1;
  Resources limits;  // at the first start
  Resources max;     // 0 = budget and machine only
  uint64_t memory_start = uint64_t{100} << 20;
  /// Of a worker: since its start. Of servers: while the job trains, and a restart keeps it, as
  /// rows are kept.
  uint64_t memory_growth_per_minute = 0;
  uint64_t memory_most = 0;  // it levels off there; 0 = never
  /// Cores that one uses while nothing holds it back; of a server: that it uses at most.
  double cpus = 0.8;
  /// Computing time of a worker's minibatch, service time of a server's request.
  std::chrono::microseconds time{10'000};
  std::chrono::seconds start{3};  // from its start until it works
};

/// Something that befalls one node.
struct Happening {
  /// It takes so many times as long for its work, and not for want of CPU.
  struct Slow {
    double factor = 1;
  };
  /// Somebody else holds it to so many cores.
  struct Quota {
    double cpus = 0;
  };
  struct Killed {};  // by the machine's owner
  struct Exits {
    int code = 1;
  };
  struct Hangs {};
  /// From now on its memory grows so much more per minute.
  struct Grows {
    uint64_t bytes_per_minute = 0;
  };

  /// A cluster takes its place away, and has no room for it for so long.
  struct Preempted {
    std::chrono::seconds no_room{0};
  };

  std::chrono::seconds at{0};
  std::string node;  // "worker-1"
  std::variant<Killed, Slow, Quota, Exits, Hangs, Grows, Preempted> what;
  /// Slow, Quota, Hangs, Grows: of the machine or the data, so that another start does not help.
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
  /// Until the job is over; 0 = it continues for `duration`.
  uint64_t records = 0;
  uint32_t records_per_minibatch = 64;
  std::vector<Happening> happenings;  // in any order
};

/// InvalidArgument names what does not fit together.
absl::Status CheckDescribed(const DescribedSpec& spec);

}  // namespace muster::scaler
