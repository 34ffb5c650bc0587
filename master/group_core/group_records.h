#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/words/limits.h"
#include "base/words/types.h"
#include "proto/messages/group_control.h"

/// What the journal holds of a synchronous group (proto/journal.proto specifies the form). There is
/// one record of each kind at most; a new one replaces it.
namespace muster {

/// A process that takes part in an attempt.
struct GroupProcess {
  std::string worker;
  uint64_t incarnation = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "worker", s.worker), f(2, "incarnation", s.incarnation);
  }
  friend auto operator<=>(const GroupProcess&, const GroupProcess&) = default;
};

/// The model that the group trains.
struct GroupModelRecord {
  std::vector<GroupTensor> tensors;
  /// CRC-32C of the state before the first step.
  uint32_t initial_digest = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "tensors", s.tensors, {.most = most::kGroupTensors});
    f(2, "initial_digest", s.initial_digest);
  }
  friend bool operator==(const GroupModelRecord&, const GroupModelRecord&) = default;
};

/// A membership, and a try of a step.
struct GroupRecord {
  /// 0: the group has not begun.
  LineageNumber lineage;
  /// The state after this step of the former lineage is the same state of this one.
  StepNumber base;
  AttemptNumber attempt;
  /// By rank.
  std::vector<GroupProcess> members;
  static void Fields(auto& f, auto& s) {
    f(1, "lineage", s.lineage), f(2, "base", s.base), f(3, "attempt", s.attempt);
    f(4, "members", s.members);
  }
  friend bool operator==(const GroupRecord&, const GroupRecord&) = default;
};

/// The newest step that has happened.
struct StepRecord {
  LineageNumber lineage;
  StepNumber step;
  /// In which it happened; 0: in a former lineage.
  AttemptNumber attempt;
  uint32_t digest = 0;
  ShardId shard;
  /// As its members have read them in sum.
  uint64_t records = 0;
  static void Fields(auto& f, auto& s) {
    f(1, "lineage", s.lineage), f(2, "step", s.step), f(3, "attempt", s.attempt);
    f(4, "digest", s.digest), f(5, "shard", s.shard), f(6, "records", s.records);
  }
  friend bool operator==(const StepRecord&, const StepRecord&) = default;
};

/// A state that is stored: steps up to it are never undone.
struct CheckpointRecord {
  StateLabel label;
  /// Every stripe, in order, with its object.
  std::vector<StateStripe> stripes;
  static void Fields(auto& f, auto& s) {
    f(1, "label", s.label), f(2, "stripes", s.stripes, {.most = most::kMembers});
  }
  friend bool operator==(const CheckpointRecord&, const CheckpointRecord&) = default;
};

using GroupMutation = std::variant<GroupModelRecord, GroupRecord, StepRecord, CheckpointRecord>;

/// The records of the group; none of a kind: the journal has none.
struct GroupRecords {
  std::optional<GroupModelRecord> model;
  std::optional<GroupRecord> group;
  std::optional<StepRecord> step;
  std::optional<CheckpointRecord> checkpoint;
  friend bool operator==(const GroupRecords&, const GroupRecords&) = default;
};

/// What the mutation means.
void Apply(const GroupMutation& mutation, GroupRecords* records);

}  // namespace muster
