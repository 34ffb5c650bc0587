#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/messages/group_standing.h"

/// A synchronous group as all readers see it. Part of the model of a job (job_status.h).
namespace muster {

/// A process that calls the master: a member, or one that is not.
struct GroupProcessStatus {
  static constexpr const char* kName = "GroupProcess";
  std::string worker;
  GroupStanding standing = GroupStanding::kUnknown;
  std::optional<uint32_t> rank;
  MemberPhase phase = MemberPhase::kIdle;
  uint32_t share_minibatches = 0;
  std::optional<uint64_t> minibatch_us;
  std::optional<uint64_t> step;
  std::string waits;
  bool suspected = false;
  bool awaited = false;
  uint64_t moved = 0;
  static void Fields(auto& f, auto& p) {
    f(1, "worker", p.worker, {"The node"});
    f(2, "standing", p.standing,
      {.says = "unknown: it has not introduced itself to this master yet; waiting: it has no place "
               "now; learner: it copies the state; refused: it can never take part",
       .most = 4});
    f(3, "rank", p.rank, {"null: it is no member"});
    f(4, "phase", p.phase,
      {.says =
           "learning: it copies the state or makes steps that it missed; reducing: it adds with "
           "the others; voted: it has the sum; applying: it changes its weights",
       .most = 5});
    f(5, "share_minibatches", p.share_minibatches, {"That it computes of the step in work"});
    f(6, "minibatch_us", p.minibatch_us,
      {"How long a minibatch takes it, on average; null: not known"});
    f(7, "step", p.step,
      {"Its state is the one after this step; null: it has none of the lineage"});
    f(8, "waits", p.waits, {"Why it is no member; empty: it is one, or nothing is known"});
    f(9, "suspected", p.suspected, {"Another member cannot reach it, and the others are asked"});
    f(10, "awaited", p.awaited,
      {"The group waits for its part: its minibatches, its vote, or a step that it applies; or it "
       "has not learned yet"});
    f(11, "moved", p.moved, {"What it has got from others: chunks, buckets, pieces of a state"});
  }
};

struct GroupStatus {
  static constexpr const char* kName = "Group";
  uint64_t lineage = 0;
  uint64_t attempt = 0;
  uint64_t step = 0;
  std::optional<uint64_t> step_in_work;
  uint64_t checkpoint_step = 0;
  uint32_t global_batch = 0;
  uint32_t members = 0;
  uint32_t members_min = 0;
  uint32_t members_max = 0;
  std::string waits;
  std::vector<GroupProcessStatus> processes;
  /// All numbers are gauges: a group may lose steps that nobody holds.
  static void Fields(auto& f, auto& g) {
    f(1, "lineage", g.lineage, {.says = "Grows whenever steps are undone", .gauge = true});
    f(2, "attempt", g.attempt, {.says = "Grows with every change of the members", .gauge = true});
    f(3, "step", g.step, {.says = "The newest that has happened; 0: none", .gauge = true});
    f(4, "step_in_work", g.step_in_work, {.says = "null: none is", .gauge = true});
    f(5, "checkpoint_step", g.checkpoint_step,
      {.says = "The state after this step is stored; 0: none", .gauge = true});
    f(6, "global_batch", g.global_batch, {.says = "Records of a step", .gauge = true});
    f(7, "members", g.members, {.says = "How many there are now", .gauge = true});
    f(8, "members_min", g.members_min, {.says = "With fewer, no step is made", .gauge = true});
    f(9, "members_max", g.members_max, {.says = "Further processes wait", .gauge = true});
    f(10, "waits", g.waits, {"Why no step is in work; empty: one is, or nothing is known"});
    f(11, "processes", g.processes, {"By name"});
  }
};

}  // namespace muster
