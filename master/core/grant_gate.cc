#include "master/core/grant_gate.h"

#include <fmt/format.h>

namespace muster {
namespace {

bool Reached(uint64_t bytes, uint64_t limit, bool before) {
  return bytes >= (before ? limit - limit / 4 : limit);
}

}  // namespace

std::optional<GrantGate::News> GrantGate::Look(uint64_t done_bytes, uint64_t failure_bytes) {
  const bool was_open = open();
  const bool done = Reached(done_bytes, limits_.done_bytes, too_much_done_);
  const bool failures = Reached(failure_bytes, limits_.failure_bytes, too_many_failures_);
  const bool news = done != too_much_done_ || failures != too_many_failures_;
  too_much_done_ = done;
  too_many_failures_ = failures;
  if (!news) return std::nullopt;
  if (open()) {
    return News{"granting-resumed",
                "shards are granted again: the job's state is below its limits"};
  }
  if (failures) {
    return News{"granting-stopped",
                fmt::format("the failures of shards have {} bytes, but the limit is {}. No more "
                            "shards are granted, and the job ends when all shards in progress are "
                            "COMMITTED. Correct the trainer, then try again with `muster shards "
                            "--retry`, or after the end with `muster run --retry-failed`",
                            failure_bytes, limits_.failure_bytes)};
  }
  if (!was_open)
    return std::nullopt;  // there are fewer failures now, and the other limit was already reported
  return News{"granting-stopped",
              fmt::format("DONE shards have {} bytes, but the limit is {}. No more shards are "
                          "granted until snapshots make these COMMITTED. Check if the servers can "
                          "write snapshots",
                          done_bytes, limits_.done_bytes)};
}

}  // namespace muster
