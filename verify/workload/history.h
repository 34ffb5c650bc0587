#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::verify {

/// A shard as the SDK names it: "dataset/epoch/index", the dataset by name.
struct ShardName {
  std::string dataset;
  uint32_t epoch = 0;
  uint64_t index = 0;
  friend auto operator<=>(const ShardName&, const ShardName&) = default;
};

/// A minibatch that a worker is about to push. The worker writes it down before it sends anything.
struct Attempt {
  uint64_t at_ns = 0;  // CLOCK_MONOTONIC, the same for all processes of a machine
  ShardName shard;
  /// Its Minibatch::step(), by which every run knows it: a run may have only some minibatches of
  /// its shard.
  uint64_t step = 0;
  uint64_t run = 0;  // 1: the first shard of this process
  std::vector<uint64_t> ids;
};

/// A shard that a worker begins, or whose loop it has run to its end.
struct ShardMark {
  uint64_t at_ns = 0;
  ShardName shard;
  uint64_t run = 0;
};

/// A step that a member of a group has applied to its state.
struct AppliedStep {
  uint64_t at_ns = 0;
  uint64_t step = 0;    // GroupStep::step()
  uint64_t digest = 0;  // of the state after it (GroupState::Digest)
  friend bool operator==(const AppliedStep&, const AppliedStep&) = default;
};

/// One line each, with its end:
///   begin <at_ns> <shard> <run>
///   attempt <at_ns> <shard> <step> <run> <id> <id> ...
///   finish <at_ns> <shard> <run>
///   applied <at_ns> <step> <digest>
std::string FormatBegin(const ShardMark& mark);
std::string FormatAttempt(const Attempt& attempt);
std::string FormatFinish(const ShardMark& mark);
std::string FormatApplied(const AppliedStep& applied);

/// "numbers/2/17".
bool ParseShardName(std::string_view text, ShardName* name);

struct HistoryVisitor {
  std::function<void(const ShardMark&)> begin;
  std::function<void(const Attempt&)> attempt;
  std::function<void(const ShardMark&)> finish;
  std::function<void(const AppliedStep&)> applied;
};
/// Reads the lines of one process in order. If the last line has no line end, its writer died while
/// writing and had not continued, so the line is left out. Reading ends at the first malformed
/// line; returns its number (from 1), or 0 if all lines are correct.
size_t ParseHistory(std::string_view text, const HistoryVisitor& visitor);

/// The step of the last whole line of an applied step in the end of a history; none: it has none.
/// The text may begin within a line.
std::optional<uint64_t> LastApplied(std::string_view end);

}  // namespace muster::verify
