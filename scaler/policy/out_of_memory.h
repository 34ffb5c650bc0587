#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// Restarts a node that was killed for its memory with a larger limit. If the node may not have
/// more, the policy stops the job and says why. If a cluster had no room for that much
/// (NoRoomPolicy then takes the limit back), the policy tries half of the increase. If the node had
/// no limit when it was killed, the machine was short of memory, and no limit helps against that.
/// CrashLoopPolicy counts such kills.
class OutOfMemoryPolicy final : public Policy {
 public:
  using Options = OutOfMemoryOptions;
  explicit OutOfMemoryPolicy(const Options& options = {}) : options_(options) {}

  std::string name() const override { return "out-of-memory"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  Proposal OnKill(const JobView& view, const NodeView& node, const NodeEnd& end) const;
  /// Remembers sizes that the cluster had no room for.
  void NoteRefused(const JobView& view);
  /// If there was no room lately for a size that `wanted` reaches: halfway from `limit` to that
  /// size. None if such a size is not known, or if the increase would be too small to help.
  std::optional<uint64_t> HalfwayTo(uint64_t wanted, uint64_t limit, const JobView& view,
                                    const NodeView& node) const;

  struct Refused {
    uint64_t memory_bytes = 0;
    TimePoint at;
  };
  Options options_;
  std::map<std::string, uint64_t> waited_with_;  // the memory that a node last waited for, by node
  std::map<std::string, Refused> refused_;       // by node
  std::map<std::string, uint32_t> handled_;      // by node: the start whose end was answered
};

/// Rounds `bytes` up to the next MiB. Round limits are easy to read, and the kernel counts in
/// pages.
uint64_t RoundUpToMiB(double bytes);

}  // namespace muster::scaler
