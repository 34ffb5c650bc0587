#pragma once

#include <cstdint>
#include <functional>
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

/// A minibatch that a worker was about to push: what it writes down before anything leaves.
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

/// One line each, with its end:
///   begin <at_ns> <shard> <run>
///   attempt <at_ns> <shard> <step> <run> <id> <id> ...
///   finish <at_ns> <shard> <run>
std::string FormatBegin(const ShardMark& mark);
std::string FormatAttempt(const Attempt& attempt);
std::string FormatFinish(const ShardMark& mark);

/// "numbers/2/17".
bool ParseShardName(std::string_view text, ShardName* name);

struct HistoryVisitor {
  std::function<void(const ShardMark&)> begin;
  std::function<void(const Attempt&)> attempt;
  std::function<void(const ShardMark&)> finish;
};
/// Reads what one process wrote, in its order. A last line without its end was cut by the death of
/// its writer, who then had not gone on: it is left out. Returns the number (from 1) of the first
/// line of no such form, at which reading ends; 0 when all is right.
size_t ParseHistory(std::string_view text, const HistoryVisitor& visitor);

}  // namespace muster::verify
