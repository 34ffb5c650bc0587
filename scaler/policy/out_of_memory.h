#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/policy_options.h"
#include "scaler/policy/policy.h"

namespace muster::scaler {

/// A node that was killed for its memory is restarted with more; where it may not have more, the
/// job stops and says why. A kill while the node had no limit is the machine's shortage, which no
/// limit mends: CrashLoopPolicy counts those.
class OutOfMemoryPolicy final : public Policy {
 public:
  using Options = OutOfMemoryOptions;
  explicit OutOfMemoryPolicy(const Options& options = {}) : options_(options) {}

  std::string name() const override { return "out-of-memory"; }
  std::vector<Proposal> Step(const JobView& view) override;

 private:
  Proposal OnKill(const JobView& view, const NodeView& node, const NodeEnd& end) const;

  Options options_;
  std::map<std::string, uint32_t> handled_;  // the start whose end was answered, by node
};

/// `bytes` up to the next MiB: limits are round for people, and for the kernel's pages.
uint64_t RoundUpToMiB(double bytes);

}  // namespace muster::scaler
