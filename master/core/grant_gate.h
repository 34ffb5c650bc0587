#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "master/core/core_options.h"

namespace muster {

/// Whether shards may be granted, or what every further one may add to has grown to its limit:
/// nothing is lost then, it only waits. DONE shards become COMMITTED by snapshots, failures go when
/// FAILED shards are tried again. Open again below three quarters of the limit. Pure; not
/// thread-safe.
class GrantGate {
 public:
  explicit GrantGate(const CoreLimits& limits) : limits_(limits) {}

  struct News {
    std::string kind;
    std::string text;
  };
  /// Memory that is held now; what operators are to hear when it opens or closes.
  std::optional<News> Look(uint64_t done_bytes, uint64_t failure_bytes);

  bool open() const { return !too_much_done_ && !too_many_failures_; }
  /// Only snapshots help.
  bool too_much_done() const { return too_much_done_; }
  /// What is under way shall be finished, and then the job is over.
  bool too_many_failures() const { return too_many_failures_; }

 private:
  CoreLimits limits_;
  bool too_much_done_ = false;
  bool too_many_failures_ = false;
};

}  // namespace muster
