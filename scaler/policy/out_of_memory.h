#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// A node that was killed for its memory is restarted with more; where it may not have more, the
/// job stops and says why. Where a cluster had no room for as much (NoRoomPolicy took it back),
/// half of the way there is tried. A kill while the node had no limit is the machine's shortage,
/// which no limit mends: CrashLoopPolicy counts those.
class OutOfMemoryPolicy final : public Policy {
 public:
  using Options = OutOfMemoryOptions;
  explicit OutOfMemoryPolicy(const Options& options = {}) : options_(options) {}

  std::string name() const override { return "out-of-memory"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  Proposal OnKill(const JobView& view, const NodeView& node, const NodeEnd& end) const;
  /// Of sizes that the cluster had no room for.
  void NoteRefused(const JobView& view);
  /// Half of the way from `limit` to the size for which there was no room lately, if `wanted` is as
  /// much, and if that is enough more to be worth it.
  std::optional<uint64_t> HalfwayTo(uint64_t wanted, uint64_t limit, const JobView& view,
                                    const NodeView& node) const;

  struct Refused {
    uint64_t memory_bytes = 0;
    TimePoint at;
  };
  Options options_;
  std::map<std::string, uint64_t> waited_with_;  // the memory that a node last waited for, by node
  std::map<std::string, Refused> refused_;       // by node
  std::map<std::string, uint32_t> handled_;      // the start whose end was answered, by node
};

/// `bytes` up to the next MiB: limits are round for people, and for the kernel's pages.
uint64_t RoundUpToMiB(double bytes);

}  // namespace muster::scaler
