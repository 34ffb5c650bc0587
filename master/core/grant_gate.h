#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "master/core/core_options.h"
#include "proto/status/event_kinds.h"

namespace muster {

/// Says if shards may be granted. They may not while the memory of DONE shards or of failures is at
/// its limit, or too many shards are FAILED; they then wait, and nothing is lost. Snapshots make
/// DONE shards COMMITTED, and failures are removed when FAILED shards are tried again. Open again
/// below three quarters of the limit of memory. Pure; not thread-safe.
class GrantGate {
 public:
  /// `failed_shards_max`: spec.training.failedShardsMax.
  GrantGate(const CoreLimits& limits, uint64_t failed_shards_max)
      : limits_(limits), failed_shards_max_(failed_shards_max) {}

  struct News {
    MasterEventKind kind;
    std::string text;
  };
  struct Use {
    uint64_t done_bytes = 0;
    uint64_t failure_bytes = 0;
    uint64_t failed_shards = 0;
  };
  /// Takes what is in use now. Returns the news for operators if the gate opens or closes.
  std::optional<News> Look(const Use& use);

  bool open() const { return !too_much_done_ && !too_many_failures_; }
  /// Only snapshots help.
  bool too_much_done() const { return too_much_done_; }
  /// The shards in progress are finished, and then the job is over.
  bool too_many_failures() const { return too_many_failures_; }

 private:
  std::string FailuresText(const Use& use) const;

  CoreLimits limits_;
  uint64_t failed_shards_max_;
  bool too_much_done_ = false;
  bool too_many_failures_ = false;
};

}  // namespace muster
