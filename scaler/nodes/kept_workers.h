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

/// How many workers a run is to have: which of its nodes they are, who leaves when fewer are
/// wanted, and what a new one starts with. It starts and stops nothing. A value.
class KeptWorkers {
 public:
  struct Options {
    RestartPolicy::Options restarts;
    /// What a new worker starts with, unless its peers have more.
    Resources limits;
  };

  KeptWorkers(const Options& options, uint32_t wanted) : options_(options), wanted_(wanted) {}

  /// The number of workers after those that leave are gone.
  uint32_t wanted() const { return wanted_; }
  /// Wants `count` workers, kWorkersMax at most: new ones wait to be started, and those that have
  /// no place in the cluster leave, then those with the highest numbers. Returns the names of those
  /// that leave, in this order.
  std::vector<std::string> Want(uint32_t count, KeeperNodes* nodes);
  /// Sets the wanted number to those that live, because one has left or will leave.
  void WantTheLiving(const KeeperNodes& nodes);
  /// The worker is not started again after this life, or at all. False: so it was already.
  static bool Leave(KeeperNode* worker);
  /// Workers that live, or wait to be started, and are to go on: their names by number.
  static std::map<uint32_t, std::string> Living(const KeeperNodes& nodes);
  /// At least as much as each of its peers needed.
  Resources LimitsOfNew(const KeeperNodes& nodes) const;

 private:
  void Add(uint32_t count, KeeperNodes* nodes);

  Options options_;
  uint32_t wanted_;
};

}  // namespace muster::scaler
