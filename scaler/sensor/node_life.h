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
  uint32_t start = 0;  // of its process
  NodeUsage usage;
};

/// One life of a node's process. It makes samples from readings and from the master's totals. All
/// totals in the samples only grow, even if the master is restarted. A value.
class NodeLife {
 public:
  /// After the restart of a master, its totals of what workers saw of a server are incomplete for
  /// this long, because each worker reports them again, in pieces.
  static constexpr std::chrono::seconds kPeersSettle{10};

  /// `start` is 0 if there is no life.
  explicit NodeLife(uint32_t start = 0) : start_(start) {}

  uint32_t start() const { return start_; }
  /// True if the master has heard from this very process.
  bool heard() const { return incarnation_ != 0; }

  enum class Heard : uint8_t {
    kMore,
    kFirst,       // the first totals: older samples lack them
    kNewSession,  // its process has a new session with new totals: older samples do not count
  };
  /// Takes what the master reports about this life.
  Heard Hear(const MasterNode& seen, uint64_t master_incarnation, TimePoint asked_at);
  /// Makes a sample. If `reading` is nullptr, the sample repeats the figures of the last reading.
  NodeSample Sample(const NodeReading* reading, TimePoint at);

  const WorkerTotals& worker() const { return worker_; }
  const ServerTotals& server() const { return server_; }
  /// The newest reading; nullptr if there was none. Its CPU time only grows.
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
  // The following members are for ServerTotals::peer_*, which the master counts.
  uint64_t master_incarnation_ = 0;
  std::optional<TimePoint> settling_until_;
  uint64_t requests_before_ = 0;  // by earlier masters
  std::chrono::microseconds round_trip_before_{0};
};

}  // namespace muster::scaler
