#include "worker_sdk/member/outer_loop_impl.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <variant>

#include "base/status.h"

namespace muster::internal {
namespace {

using sdk::OuterLoop;
using OuterKind = sdk::OuterOptimizer::Kind;

sdk::OuterOptimizer OptimizerOf(const OuterSgd& sgd) {
  return {.kind = OuterKind::kSgd, .learning_rate = sgd.learning_rate};
}
sdk::OuterOptimizer OptimizerOf(const OuterNesterov& nesterov) {
  return {.kind = OuterKind::kNesterov,
          .learning_rate = nesterov.learning_rate,
          .momentum = nesterov.momentum};
}
sdk::OuterOptimizer OptimizerOf(const OuterAdam& adam) {
  return {.kind = OuterKind::kAdam,
          .learning_rate = adam.learning_rate,
          .momentum = adam.beta1,
          .beta2 = adam.beta2,
          .epsilon = adam.epsilon};
}

OuterLoop::Options LoopOptions(const DiLoCoOptions& options) {
  return {
      .optimizer = std::visit([](const auto& outer) { return OptimizerOf(outer); }, options.outer),
      .fragments = options.fragments,
      .mixing = options.mixing,
      .members = options.members};
}

}  // namespace

OuterLoopImpl::OuterLoopImpl(GroupImpl* group, const DiLoCoOptions& options)
    : group_(group), sum_(options.sum), loop_(std::make_shared<OuterLoop>(LoopOptions(options))) {
  if (group_->KeepMemory(loop_)) return;
  refused_ = true;
  group_->ProgramError(
      "a second DiLoCo or LocalSgd for one group: a group has one, as long as it exists");
}

bool OuterLoopImpl::MayAdd(std::string_view name) {
  if (!registered_) return true;
  group_->ProgramError(fmt::format(
      "the weights \"{}\" come after the first DiLoCo::NextStep: register them before", name));
  return false;
}

void OuterLoopImpl::AddWeights(std::string_view name, std::span<float> weights) {
  if (MayAdd(name)) loop_->AddWeights(name, weights);
}

void OuterLoopImpl::AddMean(std::string_view name, std::span<float> values) {
  if (MayAdd(name)) loop_->AddMean(name, values);
}

absl::Status OuterLoopImpl::Register() {
  MUSTER_RETURN_IF_ERROR(loop_->Close());
  for (const OuterLoop::State& state : loop_->SharedState()) {
    group_->AddState(state.name, GroupDtype::kFloat32, state.values.size(),
                     std::as_writable_bytes(state.values));
  }
  group_->AddState("outer/updates", GroupDtype::kInt64, loop_->updates().size(),
                   std::as_writable_bytes(loop_->updates()));
  // Without content: members whose options differ have different state, and are refused.
  group_->AddState("outer/options: " + loop_->OptionsText(), GroupDtype::kBytes, 0, {});
  for (const OuterLoop::Slot& slot : loop_->Slots()) {
    const SumOptions exact{.type = SumType::kFloat32};
    buckets_.push_back(group_->AddWholeBucket(slot.name, slot.elements, slot.exact ? exact : sum_));
  }
  const SumOptions count{.type = SumType::kFixedPoint, .fraction_bits = 0};
  members_bucket_ = group_->AddWholeBucket("outer/members", 1, count);
  return group_->status();
}

std::unique_ptr<GroupStepImpl> OuterLoopImpl::NextStep() {
  if (refused_) return nullptr;
  if (!registered_) {
    registered_ = true;
    const absl::Status status = Register();
    if (!status.ok()) {
      group_->ProgramError(std::string(Message(status)));
      return nullptr;
    }
  }
  std::unique_ptr<GroupStepImpl> step = group_->NextStep();
  // The state may be another one.
  const bool goes_on = step != nullptr && step->computes() && loop_->Runs(step->run());
  if (!goes_on) loop_->ShowShared();
  return step;
}

void OuterLoopImpl::Begin(const GroupStepImpl& step) {
  if (!refused_ && step.computes() && !step.evaluate())
    loop_->BeginRun(group_->lineage(), step.run());
}

bool OuterLoopImpl::Contribute(GroupStepImpl* step) {
  if (!loop_->Runs(step->run())) {
    group_->ProgramError(
        "DiLoCo::Commit of a step whose loop was not over DiLoCo::Minibatches of this step");
    return false;
  }
  for (uint32_t slot = 0; slot < buckets_.size(); ++slot) {
    if (!step->Put(buckets_[slot], loop_->Contribution(slot), loop_->WhatIn(slot))) return false;
  }
  return step->Put(members_bucket_, std::array{1.0F});
}

bool OuterLoopImpl::Commit(GroupStepImpl* step, const std::function<void()>& apply) {
  if (refused_) return false;
  const bool trained = step->computes() && !step->evaluate();
  if (trained && !Contribute(step)) return step->Commit({});
  return step->Commit([&] {
    loop_->Apply(trained ? OuterLoop::Part::kOwn : OuterLoop::Part::kOthers,
                 step->Sum(members_bucket_)[0],
                 [&](uint32_t slot) { return step->Sum(buckets_[slot]); });
    if (apply) apply();
  });
}

}  // namespace muster::internal
