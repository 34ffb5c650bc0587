#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "master/group_core/group_data.h"

namespace muster::testing {

inline ShardId GroupShard(uint64_t index) {
  return {DatasetId(0), EpochIndex(0), ShardIndex(index)};
}

/// The shards of a job in memory: one dataset, in order. A value, so a copy of it is a journal.
class FakeData : public GroupData {
 public:
  enum class State : uint8_t { kTodo, kDone, kCommitted, kFailed };
  explicit FakeData(std::vector<uint32_t> minibatches) : minibatches(std::move(minibatches)) {
    states.resize(this->minibatches.size());
  }

  std::optional<StepData> Next() override {
    if (over || closed) return std::nullopt;
    if (!lacking.empty()) {
      return StepData{GroupShard(lacking.front()), minibatches[lacking.front()], std::nullopt,
                      true};
    }
    std::optional<StepData> next;
    for (uint64_t i = 0; i < states.size(); ++i) {
      if (states[i] != State::kTodo) continue;
      if (next.has_value()) {
        next->ahead = GroupShard(i);
        break;
      }
      next = {GroupShard(i), minibatches[i], std::nullopt};
    }
    return next;
  }
  bool IsTodo(const ShardId& shard) const { return states[shard.index.value()] == State::kTodo; }
  bool Lacks(const ShardId& shard) const {
    return std::ranges::find(lacking, shard.index.value()) != lacking.end();
  }
  bool IsOpen(const ShardId& shard) const override { return IsTodo(shard) || Lacks(shard); }
  LeaseToken NewToken(const ShardId&) override { return {incarnation, ++tokens}; }
  void EndTokensBelow(LeaseToken below) override {
    MUSTER_CHECK(below > floor);
    floor = below;
  }
  void Replayed(const ShardId& shard, RestoreEpoch pushed_under) override {
    MUSTER_CHECK(Lacks(shard));
    if (pushed_under >= restore_epoch) std::erase(lacking, shard.index.value());
  }
  void Commit(const ShardId& shard, LeaseToken token, const ShardMetrics& metrics,
              const std::string& worker, RestoreEpoch pushed_under) override {
    newest_pushed_under = pushed_under;
    MUSTER_CHECK(IsTodo(shard) && !worker.empty() && token != LeaseToken());
    states[shard.index.value()] = State::kDone;
    done.push_back(shard.index.value());
    records += metrics.records;
  }
  void Checkpointed(uint64_t kept) override {
    while (done.size() > kept) {
      states[done.front()] = State::kCommitted;
      done.erase(done.begin());
    }
    over = over || AllSettled();
  }
  void Undo(uint64_t count) override {
    MUSTER_CHECK(count <= done.size());
    for (; count > 0; --count) {
      states[done.back()] = State::kTodo;
      std::erase(lacking, done.back());
      done.pop_back();
    }
  }
  void Redelivered(uint64_t count) override { redelivered += count; }
  bool NeedsCheckpoint() const override {
    return !over && !done.empty() && std::ranges::find(states, State::kTodo) == states.end();
  }
  void Charge(const ShardId& shard, LeaseToken token, const std::string& worker, uint64_t,
              std::string_view reason) override {
    MUSTER_CHECK(IsOpen(shard));
    LeaseToken& last = charged[shard.index.value()];
    if (token <= last) return;
    last = token;
    charges.push_back(worker + ": " + std::string(reason));
    if (++failures[shard.index.value()] < failures_max || Lacks(shard)) return;
    states[shard.index.value()] = State::kFailed;
    over = over || AllSettled();
  }
  std::optional<uint32_t> Workers() const override { return workers; }
  bool Over() const override { return over; }
  void FailJob(std::string_view reason) override {
    over = true;
    failed_with = reason;
  }
  void Say(MasterEventKind kind, const std::string& worker, std::string_view text) override {
    events.push_back(std::string(kind.word()) + " " + worker + ": " + std::string(text));
  }

  bool AllSettled() const {
    for (const State state : states) {
      if (state == State::kTodo || state == State::kDone) return false;
    }
    return true;
  }
  uint64_t CountOf(State state) const {
    return static_cast<uint64_t>(std::ranges::count(states, state));
  }

  std::vector<uint32_t> minibatches;
  MasterIncarnation incarnation;
  uint32_t failures_max = 3;
  std::optional<uint32_t> workers;
  bool closed = false;  // no shard now, as of a slow topic
  std::vector<State> states;
  std::vector<uint64_t> done;
  /// DONE shards that must be replayed.
  std::vector<uint64_t> lacking;
  RestoreEpoch restore_epoch, newest_pushed_under;
  LeaseToken floor;
  std::map<uint64_t, LeaseToken> charged;
  std::map<uint64_t, uint32_t> failures;
  uint64_t records = 0, redelivered = 0;
  bool over = false;
  std::string failed_with;
  uint64_t tokens = 0;
  std::vector<std::string> events, charges;
};

}  // namespace muster::testing
