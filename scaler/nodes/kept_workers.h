#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/resources.h"
#include "host/restart_policy.h"
#include "scaler/nodes/keeper_node.h"

namespace muster::scaler {

/// The nodes of one run, by name.
using KeeperNodes = std::map<std::string, KeeperNode>;

/// Knows how many workers a run wants: which nodes they are, which of them leave when fewer are
/// wanted, and what limits a new one starts with. It starts and stops nothing. A value.
class KeptWorkers {
 public:
  struct Options {
    RestartPolicy::Options restarts;
    /// The limits that a new worker starts with, unless its peers have more.
    Resources limits;
  };

  KeptWorkers(const Options& options, uint32_t wanted) : options_(options), wanted_(wanted) {}

  /// The number of workers when those that leave are gone.
  uint32_t wanted() const { return wanted_; }
  /// Wants `count` workers, kWorkersMax at most. If more are wanted, new ones wait to be started.
  /// If fewer are wanted, those without a place in the cluster leave first, then those with the
  /// highest numbers. Returns the names of those that leave, in this order.
  std::vector<std::string> Want(uint32_t count, KeeperNodes* nodes);
  /// Makes the wanted number equal to the number of living workers, because one has left or will
  /// leave.
  void WantTheLiving(const KeeperNodes& nodes);
  /// Says that the worker is not started again after this life, or at all. False if that was so
  /// already.
  static bool Leave(KeeperNode* worker);
  /// The names, by number, of the workers that live or wait to be started, and do not leave.
  static std::map<uint32_t, std::string> Living(const KeeperNodes& nodes);
  /// The limits of a new worker. They are at least as large as those of each of its peers.
  Resources LimitsOfNew(const KeeperNodes& nodes) const;

 private:
  void Add(uint32_t count, KeeperNodes* nodes);

  Options options_;
  uint32_t wanted_;
};

}  // namespace muster::scaler
