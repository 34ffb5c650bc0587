#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "master/core/durable_state.h"
#include "sharding/control.h"

namespace muster {

/// A drain of one node; of the process that has the node's name.
struct NodeDrain {
  enum class State : uint8_t { kNone, kDraining, kDrained };
  State state = State::kNone;
  TimePoint began;
  std::chrono::milliseconds timeout{0};
  /// Of a server: every DONE shard up to this is to be in its snapshots.
  DoneSeq goal;
  /// Of a worker: leases left. Of a server: partitions whose snapshot is behind the goal.
  uint32_t left = 0;
  /// The worker has heard of it.
  bool told = false;
  /// The server asks for it, having been told to end.
  bool leaving = false;
};
/// "", "draining", "drained".
std::string_view ToString(NodeDrain::State state);

struct Node {
  NodeRecord record;
  // Not journaled.
  std::optional<TimePoint> last_heard;
  NodeDrain drain;
  PeerTimes peers;          // servers: what all workers saw of this incarnation
  WorkerTimes times;        // workers
  ServerCounters counters;  // servers
  uint64_t sequence = 0;    // servers: of the newest exchange
  std::string warm_start_error;
  /// When this server, whichever process, last said that its snapshots fail; none: they work.
  std::optional<TimePoint> snapshots_failed_at;
};

inline constexpr std::string_view kRoleWorker = "worker";
inline constexpr std::string_view kRoleServer = "ps";
inline constexpr std::string_view kRoleMaster = "master";
inline constexpr std::string_view kRoleScaler = "scaler";

/// Every process slot that the job has seen. Pure; not thread-safe.
class NodeTable {
 public:
  static constexpr size_t kNodesMax = 10'000;
  static constexpr size_t kSupersededMax = 256;

  explicit NodeTable(std::map<std::string, NodeRecord> nodes);

  /// nullptr: not known.
  Node* Find(const std::string& name);
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  /// nullptr when there are kNodesMax already. A new node is "starting".
  Node* FindOrAdd(const std::string& name, std::string_view role);
  /// "ps-3".
  static std::string ServerName(ServerId id);
  /// None when the name is not "ps-<number>".
  static std::optional<ServerId> ServerIdOf(const std::string& name);

  /// The node's record must be journaled.
  void Touch(const Node& node) { dirty_.insert(node.record.name); }
  /// Sets the state; returns whether it changed.
  bool SetState(Node* node, std::string_view state);
  /// Time passed in which nobody could be heard: everybody counts as heard that much later, at most
  /// `now`.
  void Forgive(std::chrono::nanoseconds gap, TimePoint now);
  /// Every process of older runs is dead.
  void BeginRun();
  /// Endpoints of the servers whose process is known, for the workers' map.
  std::vector<ServerEndpoint> Endpoints() const;
  /// Sums over all server processes of the job.
  uint64_t PartsSkipped() const;
  uint64_t PartsStale() const;

  void Collect(std::vector<Mutation>* mutations);

 private:
  std::map<std::string, Node> nodes_;
  std::set<std::string> dirty_;
};

}  // namespace muster
