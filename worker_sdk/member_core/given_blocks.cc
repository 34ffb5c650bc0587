#include "worker_sdk/member_core/given_blocks.h"

#include "base/random.h"

namespace muster::sdk {

void GivenBlocks::Follow(const std::optional<WantedSum>& wanted, size_t blocks) {
  wanted_ = wanted;
  if (!wanted.has_value()) return;
  share_ = MinibatchesOf(wanted->share);
  if (attempt_ == wanted->attempt && step_ == wanted->step) return;
  attempt_ = wanted->attempt;
  step_ = wanted->step;
  begun_.assign(blocks, false);
  digests_.assign(blocks, std::nullopt);
  missing_ = blocks;
}

bool GivenBlocks::Begin(uint32_t block, OwnGradients* sums) {
  if (!wanted_.has_value() || begun_[block] || !sums->Complete(wanted_->run, block, share_)) {
    return false;
  }
  begun_[block] = true;
  return true;
}

std::optional<uint32_t> GivenBlocks::OnBlock(AttemptNumber attempt, StepNumber step, uint32_t block,
                                             uint32_t digest) {
  bool current = attempt == attempt_ && step == step_ && block < begun_.size() && begun_[block];
  if (!current || digests_[block].has_value()) return std::nullopt;
  digests_[block] = digest;
  if (--missing_ > 0) return std::nullopt;
  uint64_t all = 0;
  for (const std::optional<uint32_t>& each : digests_) all = HashWords(all, *each);
  return static_cast<uint32_t>(all);
}

}  // namespace muster::sdk
