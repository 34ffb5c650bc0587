#include "tests/scaler/rest/fake_job_api.h"

/// The synchronous group of the fake job.
namespace muster::scaler::rest::testing {

void FakeJobApi::AddGroup() {
  GroupStatus& group = job_.group.emplace();
  group = {.lineage = 1,
           .attempt = 7,
           .step = 1204,
           .step_in_work = 1205,
           .checkpoint_step = 1100,
           .global_batch = 256,
           .members = 2,
           .members_min = 1,
           .members_max = 2,
           .waits = "",
           .processes = {}};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    GroupProcessStatus& member = group.processes.emplace_back();
    member.worker = rank == 0 ? "worker-0" : "worker-1";
    member.standing = GroupStanding::kMember;
    member.rank = rank;
    member.phase = rank == 0 ? MemberPhase::kComputing : MemberPhase::kReducing;
    member.share_minibatches = rank == 0 ? 3 : 5;
    member.minibatch_us = 12'340;
    member.step = 1204;
  }
  GroupProcessStatus& waiting = group.processes.emplace_back();
  waiting.worker = "worker-2";
  waiting.standing = GroupStanding::kWaiting;
  waiting.waits = "the group has all of its 2 members (spec.group.maxMembers)";
}

}  // namespace muster::scaler::rest::testing
