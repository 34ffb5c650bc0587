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
#include "master/core/nodes/write_trouble.h"
#include "master/core/servers/restore_trouble.h"
#include "master/core/workers/lease_table.h"
#include "proto/messages/control.h"
#include "proto/messages/node_place.h"
#include "proto/messages/node_role.h"
#include "proto/messages/node_state.h"

namespace muster {

/// A drain of one node. It belongs to the node's current process.
struct NodeDrain {
  DrainState state = DrainState::kNone;
  TimePoint began;
  std::chrono::milliseconds timeout{0};
  /// Of a server: its snapshots must contain every DONE shard up to this.
  DoneSeq goal;
  /// Of a worker: leases left. Of a server: partitions whose snapshot is behind the goal.
  uint32_t left = 0;
  /// The worker has heard of it.
  bool told = false;
  /// The server asks for the drain because it was told to end.
  bool leaving = false;
};

/// A start of a node that has no process yet.
struct NodeHold {
  StartNumber start;  // none: no start
  NodeWait wait = NodeWait::kNone;
  std::string reason;
};

struct Node {
  NodeRecord record;
  // Not journaled.
  NodeHold hold;  // of a start; one that has a process by now does not count
  std::optional<TimePoint> last_heard;
  /// When a supervisor told this master of the process; none: it did not, or not since it began.
  std::optional<TimePoint> told_at;
  NodeDrain drain;
  PeerTimes peers;          // servers: what all workers saw of this incarnation
  WorkerTimes times;        // workers
  ServerCounters counters;  // servers
  ProcessUsage usage;       // workers and servers; 0 bytes of memory: not told
  uint64_t sequence = 0;    // servers: of the newest exchange
  std::string warm_start_error;
  RestoreTrouble restore;  // servers
  /// Servers: workers that cannot connect to this incarnation, and why.
  std::map<std::string, std::string> unreachable_from;
  WriteTrouble snapshots;  // servers
  WriteTrouble outputs;    // workers: of predictions
};

/// True if a process of the node is known that was started after `start`.
bool IsReplaced(const NodeRecord& record, StartNumber start);
/// kFailedPrecondition for a process that was replaced: it must exit.
absl::Status CheckNotReplaced(const NodeRecord& record, StartNumber start);
/// Why the newest start of the node has no process yet; nullptr: it has one, or is on its way.
const NodeHold* HoldOf(const Node& node);
/// How often it was started again in this run.
uint32_t RestartsOf(const NodeRecord& record);

/// Every process slot that the job has seen. Pure; not thread-safe.
class NodeTable {
 public:
  static constexpr size_t kSupersededMax = 256;

  NodeTable(std::map<std::string, NodeRecord> nodes, size_t nodes_max);

  /// nullptr: not known.
  Node* Find(const std::string& name);
  /// Like Find(ServerName(id)), but faster: every exchange of a worker names servers.
  Node* FindServer(ServerId id);
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  /// A new node is kStarting. If there are already `nodes_max` nodes, it replaces the worker that
  /// ended or was lost longest ago and has none of the `leases`; nullptr if there is no such
  /// worker. With a node, only its name and figures are lost: tokens alone decide which calls
  /// count.
  Node* FindOrAdd(const std::string& name, NodeRole role, const LeaseTable& leases);
  /// "ps-3".
  static std::string ServerName(ServerId id);
  /// None when the name is not "ps-<number>".
  static std::optional<ServerId> ServerIdOf(const std::string& name);

  /// The node's record must be journaled.
  void Touch(const Node& node) { dirty_.insert(node.record.name); }
  /// A process of the node reports its start number. A process started by hand reports 0, which
  /// changes nothing.
  void KeepStart(Node* node, StartNumber start);
  /// The only function that changes the state of a node; returns the former state.
  NodeState Learn(Node* node, NodeNews news);
  /// Time passed in which no node could be heard. Every node counts as heard this much later, but
  /// not later than `now`.
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
