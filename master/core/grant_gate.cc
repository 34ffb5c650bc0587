#include "master/core/grant_gate.h"

#include <fmt/format.h>

#include "base/text.h"

namespace muster {
namespace {

bool Reached(uint64_t bytes, uint64_t limit, bool before) {
  return bytes >= (before ? limit - limit / 4 : limit);
}

}  // namespace

std::string GrantGate::FailuresText(const Use& use) const {
  const bool shards = use.failed_shards > failed_shards_max_;
  const std::string what =
      shards ? fmt::format("{} FAILED, and spec.training.failedShardsMax is {}",
                           CountText(use.failed_shards, "shard"), CountText(failed_shards_max_))
             : fmt::format("the failures of shards have {} bytes, but the limit is {}",
                           use.failure_bytes, limits_.failure_bytes);
  return fmt::format(
      "{}. No more shards are granted, and the job ends when all shards in progress "
      "are COMMITTED. Correct the trainer, then try again with `muster shards "
      "--retry`, or after the end with `muster run --retry-failed`{}",
      what, shards ? ". To continue without these shards, raise the limit" : "");
}

std::optional<GrantGate::News> GrantGate::Look(const Use& use) {
  const bool was_open = open();
  const bool done = Reached(use.done_bytes, limits_.done_bytes, too_much_done_);
  const bool failures = use.failed_shards > failed_shards_max_ ||
                        Reached(use.failure_bytes, limits_.failure_bytes, too_many_failures_);
  const bool news = done != too_much_done_ || failures != too_many_failures_;
  too_much_done_ = done;
  too_many_failures_ = failures;
  if (!news) return std::nullopt;
  if (open()) {
    return News{"granting-resumed",
                "shards are granted again: the job's state is below its limits"};
  }
  if (failures) {
    return News{"granting-stopped", FailuresText(use)};
  }
  if (!was_open)
    return std::nullopt;  // there are fewer failures now, and the other limit was already reported
  return News{"granting-stopped",
              fmt::format("DONE shards have {} bytes, but the limit is {}. No more shards are "
                          "granted until snapshots make these COMMITTED. Check if the servers can "
                          "write snapshots",
                          use.done_bytes, limits_.done_bytes)};
}

}  // namespace muster
