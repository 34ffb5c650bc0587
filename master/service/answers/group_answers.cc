#include "master/service/answers/group_answers.h"

#include "base/text.h"

namespace muster {
namespace {

GroupProcessStatus ProcessOf(const GroupCore::ProcessView& process, LineageNumber lineage) {
  GroupProcessStatus status{.worker = process.worker,
                            .standing = process.standing,
                            .rank = std::nullopt,
                            .phase = process.phase,
                            .share_minibatches = process.share,
                            .minibatch_us = std::nullopt,
                            .step = std::nullopt,
                            .waits = ValidUtf8(process.waits),
                            .suspected = process.suspected,
                            .awaited = process.awaited,
                            .moved = process.moved};
  if (process.standing == GroupStanding::kMember) status.rank = process.rank;
  if (process.minibatch_us > 0) status.minibatch_us = process.minibatch_us;
  // The numbers of another lineage's steps say nothing about this one.
  if (process.state.has_value() && process.state->lineage == lineage) {
    status.step = process.state->step.value();
  }
  return status;
}

}  // namespace

std::optional<GroupStatus> GroupOf(const MasterCore& core) {
  if (core.group() == nullptr) return std::nullopt;
  const GroupOptions& options = *core.options().group;
  const GroupCore::View view = core.group()->Show();
  GroupStatus status{.lineage = view.lineage.value(),
                     .attempt = view.attempt.value(),
                     .step = view.step.value(),
                     .step_in_work = std::nullopt,
                     .checkpoint_step = view.checkpoint.value(),
                     .global_batch = options.global_batch,
                     .members = 0,
                     .members_min = options.members_min,
                     .members_max = options.members_max,
                     .waits = ValidUtf8(view.waits),
                     .processes = {}};
  if (view.shard.has_value()) status.step_in_work = view.step.Next().value();
  for (const GroupCore::ProcessView& process : view.processes) {
    status.processes.push_back(ProcessOf(process, view.lineage));
    if (process.standing == GroupStanding::kMember) ++status.members;
  }
  return status;
}

}  // namespace muster
