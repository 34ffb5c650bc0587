#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "master/core/durable_state.h"
#include "master/core/servers/restore_trouble.h"
#include "master/core/workers/lease_table.h"
#include "proto/messages/control.h"
#include "proto/messages/node_role.h"
#include "proto/messages/node_state.h"

namespace muster {

/// A drain of one node; of the process that has the node's name.
struct NodeDrain {
  DrainState state = DrainState::kNone;
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
  RestoreTrouble restore;  // servers
  /// When this server, whichever process, last said that its snapshots fail; none: they work.
  std::optional<TimePoint> snapshots_failed_at;
};

/// A process of the node has been heard of that was started after `start`.
bool IsReplaced(const NodeRecord& record, StartNumber start);
/// kFailedPrecondition for a process that was replaced: it must exit.
absl::Status CheckNotReplaced(const NodeRecord& record, StartNumber start);
/// How often it was started again in this run.
uint32_t RestartsOf(const NodeRecord& record);

/// Every process slot that the job has seen. Pure; not thread-safe.
class NodeTable {
 public:
  static constexpr size_t kSupersededMax = 256;

  NodeTable(std::map<std::string, NodeRecord> nodes, size_t nodes_max);

  /// nullptr: not known.
  Node* Find(const std::string& name);
  /// As Find(ServerName(id)), without looking at names: every exchange of a worker names servers.
  Node* FindServer(ServerId id);
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  /// A new node is kStarting. When there are `nodes_max` already it takes the place of the worker
  /// that ended, or was lost, longest ago, and that holds none of the `leases`; nullptr when there
  /// is none. Only names and figures go with a node: tokens alone say whose words count.
  Node* FindOrAdd(const std::string& name, NodeRole role, const LeaseTable& leases);
  /// "ps-3".
  static std::string ServerName(ServerId id);
  /// None when the name is not "ps-<number>".
  static std::optional<ServerId> ServerIdOf(const std::string& name);

  /// The node's record must be journaled.
  void Touch(const Node& node) { dirty_.insert(node.record.name); }
  /// A process of the node says which start it is. One that was started by hand does not (0): what
  /// is known stays.
  void KeepStart(Node* node, StartNumber start);
  /// The only way in which the state of a node changes; returns the former one.
  NodeState Learn(Node* node, NodeNews news);
  /// Time passed in which nobody could be heard: everybody counts as heard that much later, at most
  /// `now`.
  void Forgive(std::chrono::nanoseconds gap, TimePoint now);
  /// Every process of older runs is dead.
  void BeginRun();
  /// Endpoints of the servers whose process is known, by id, for the workers' map.
  std::vector<ServerEndpoint> Endpoints() const;
  /// Sums over all server processes of the job.
  uint64_t PartsSkipped() const;
  uint64_t PartsStale() const;

  void Collect(std::vector<Mutation>* mutations);

 private:
  bool ForgetOne(const LeaseTable& leases);

  std::map<std::string, Node> nodes_;
  /// By id, those that were found before; the others are null.
  std::vector<Node*> servers_;
  const size_t nodes_max_;
  std::set<std::string> dirty_;
};

}  // namespace muster
