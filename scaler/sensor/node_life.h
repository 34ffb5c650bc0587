#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "host/resources.h"
#include "scaler/model/job_view.h"
#include "scaler/sensor/master_digest.h"

namespace muster::scaler {

/// What the host measured of a node's present life.
struct NodeReading {
  std::string node;
  uint32_t start = 0;  // the start number of its process
  NodeUsage usage;
};

/// One life of a node's process: makes samples of readings and of the totals that the master has,
/// whose every total only grows, whatever happens to the master meanwhile. A value.
class NodeLife {
 public:
  /// From a master's restart on, for so long its totals of what workers saw of a server are not
  /// complete: each worker tells them again, in pieces.
  static constexpr std::chrono::seconds kPeersSettle{10};

  /// `start` 0: none.
  explicit NodeLife(uint32_t start = 0) : start_(start) {}

  uint32_t start() const { return start_; }
  /// The master has heard this very process.
  bool heard() const { return incarnation_ != 0; }

  enum class Heard : uint8_t {
    kMore,
    kFirst,       // totals, for the first time: samples of before lack them
    kNewSession,  // a new session of its process, with new totals: older samples do not count
  };
  /// The master's word about this life.
  Heard Hear(const MasterNode& seen, uint64_t master_incarnation, TimePoint asked_at);
  /// The newest reading; nullptr: there is none, and the figures of the last one hold on.
  NodeSample Sample(const NodeReading* reading, TimePoint at);

  const WorkerTotals& worker() const { return worker_; }
  const ServerTotals& server() const { return server_; }
  /// The newest reading, but for a processor time that only grows; nullptr: there was none.
  const NodeUsage* usage() const { return usage_.has_value() ? &*usage_ : nullptr; }

 private:
  bool HasTotals() const;
  void HearPeers(const ServerTotals& seen, uint64_t master_incarnation, TimePoint asked_at);

  uint32_t start_ = 0;
  uint64_t incarnation_ = 0;
  WorkerTotals worker_;
  ServerTotals server_;
  NodeSample last_;
  std::optional<NodeUsage> usage_;
  // Of ServerTotals::peer_*, which the master counts.
  uint64_t master_incarnation_ = 0;
  std::optional<TimePoint> settling_until_;
  uint64_t requests_before_ = 0;  // by earlier masters
  std::chrono::microseconds round_trip_before_{0};
};

}  // namespace muster::scaler
