#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "base/words/limits.h"

namespace muster {

/// The settings of a synchronous group.
struct GroupOptions {
  /// Records of a step. Only shown; 0: not known.
  uint32_t global_batch = 0;
  /// With fewer members the group waits. At least 1.
  uint32_t members_min = 1;
  /// Further processes wait.
  uint32_t members_max = most::kMembers;
  /// Workers that the job is to have; 0: not known.
  uint32_t workers = 0;
  /// A process that has not called for this long is lost.
  std::chrono::milliseconds silence_limit{5'000};
  /// How long a group that begins waits for more members after the first.
  std::chrono::milliseconds join_wait{2'000};
  /// How long the group waits for a process that holds the newest step, before steps are undone.
  std::chrono::milliseconds rollback_wait{10'000};
  /// How long a call of a process is kept, at most. A member may be quiet for as long after it.
  std::chrono::milliseconds heartbeat_interval{500};
  /// Between two checkpoints.
  std::chrono::milliseconds checkpoint_interval{60'000};
  /// After a suspicion: for how long the other members may show that they live.
  std::chrono::milliseconds inquiry_wait{1'000};
  /// For how long an evicted process is no member.
  std::chrono::milliseconds eviction{5'000};
  /// Names of stored stripes begin like this.
  std::string object_prefix = "group/";
  /// Members that are faster get more minibatches.
  bool quotas = true;
  /// So many sums are kept for learners before the state is captured anew.
  uint32_t kept_sums_max = 16;
  /// A member keeps sums of so many bytes in all, at most; but always those of four steps.
  uint64_t kept_bytes_max = uint64_t{256} << 20;
};

}  // namespace muster
