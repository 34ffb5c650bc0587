#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "muster/local_sgd.h"
#include "worker_sdk/member/group_impl.h"
#include "worker_sdk/member/group_step.h"
#include "worker_sdk/member_core/outer_loop.h"

namespace muster::internal {

/// The shell of sdk::OuterLoop: registers its state and its buckets with the group, and carries
/// values between it and the group's steps. Belongs to the trainer's thread.
class OuterLoopImpl {
 public:
  /// `group` outlives it.
  OuterLoopImpl(GroupImpl* group, const DiLoCoOptions& options);

  void AddWeights(std::string_view name, std::span<float> weights);
  void AddMean(std::string_view name, std::span<float> values);
  std::unique_ptr<GroupStepImpl> NextStep();
  /// The loop over the minibatches of the step begins.
  void Begin(const GroupStepImpl& step);
  /// `apply` may be empty.
  bool Commit(GroupStepImpl* step, const std::function<void()>& apply);

 private:
  absl::Status Register();
  bool MayAdd(std::string_view name);
  /// False: the step has failed.
  bool Contribute(GroupStepImpl* step);

  GroupImpl* const group_;
  const SumOptions sum_;
  const std::shared_ptr<sdk::OuterLoop> loop_;
  bool refused_ = false;  // the group has another one
  bool registered_ = false;
  std::vector<uint32_t> buckets_;  // of the slots
  uint32_t members_bucket_ = 0;    // one element: how many members have trained in the step
};

}  // namespace muster::internal
