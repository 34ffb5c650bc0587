#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proto/messages/node_figures.h"
#include "proto/messages/node_place.h"
#include "proto/messages/node_state.h"

/// Nodes as the master sees them. Part of the model of a job (job_status.h).
namespace muster {

struct WorkerStatus {
  static constexpr const char* kName = "Worker";
  uint64_t records_committed = 0;
  uint64_t shards_held = 0;
  WorkerTimes times;
  static void Fields(auto& f, auto& w) {
    f(1, "records_committed", w.records_committed,
      {"Of training, by shards whose done it reported"});
    f(2, "shards_held", w.shards_held, {.gauge = true});
    f(3, "times", w.times, {"Of this process"});
  }
};
struct ServerStatus {
  static constexpr const char* kName = "Server";
  uint32_t partitions = 0;
  uint32_t partitions_serving = 0;
  uint32_t lanes = 0;
  ServerCounters counters;
  PeerTimes seen_by_workers;
  static void Fields(auto& f, auto& s) {
    f(1, "partitions", s.partitions, {.says = "That it owns", .gauge = true});
    f(2, "partitions_serving", s.partitions_serving, {.gauge = true});
    f(3, "lanes", s.lanes, {.says = "Threads that serve; 0: not known", .gauge = true});
    f(4, "counters", s.counters, {"Of this process"});
    f(5, "seen_by_workers", s.seen_by_workers,
      {"What all workers saw of this process. Counted by this master process: after its restart "
       "(another master_incarnation) workers that have ended meanwhile are missing"});
  }
};

struct NodeStatus {
  static constexpr const char* kName = "NodeStatus";
  std::string name;
  std::string role = "worker";
  NodeState state = NodeState::kStarting;
  DrainState drain = DrainState::kNone;
  uint32_t drain_left = 0;
  uint64_t pid = 0;
  uint64_t start = 0;
  uint64_t incarnation = 0;
  std::optional<uint64_t> heartbeat_age_ms;
  uint32_t restarts = 0;
  std::string last_exit;
  std::optional<WorkerStatus> worker;
  std::optional<ServerStatus> server;
  std::string host;
  std::string trouble;
  NodeWait wait = NodeWait::kNone;
  std::string wait_reason;
  std::optional<ProcessUsage> own_usage;
  static void Fields(auto& f, auto& n) {
    f(1, "name", n.name, {"worker-0, ps-1, master, ..."});
    f.Choice(2, "role", n.role, {"master", "ps", "worker", "scaler"});
    f(3, "state", n.state,
      {"exited: it may be started again; finished: it is not; waiting: it was started, and the "
       "cluster has no place for it yet"});
    f(4, "drain", n.drain, {"none: not requested. drained: also if its time ran out"});
    f(5, "drain_left", n.drain_left,
      {"Of a drain: a worker's leases; a server's partitions whose snapshot does not yet hold "
       "everything that was done when it began"});
    f(6, "pid", n.pid, {"For people: it comes again; 0: not known"});
    f(7, "start", n.start, {"1 for the first process of this node in this run, then 2, ..."});
    f(8, "incarnation", n.incarnation, {"Of its process; totals start again at 0 with it"});
    f(9, "heartbeat_age_ms", n.heartbeat_age_ms,
      {"Since the master last heard of the node; null: it sends no heartbeats (master, scaler), or "
       "has not been heard of yet"});
    f(10, "restarts", n.restarts);
    f(11, "last_exit", n.last_exit, {"SIGKILL, exit 1, ...; empty: none"});
    f(12, "worker", n.worker, {"null: it is none"});
    f(13, "server", n.server, {"null: it is none"});
    f(14, "host", n.host,
      {"The machine on which `muster join` runs it; empty: the scaler runs it"});
    f(15, "trouble", n.trouble, {"Why workers cannot connect to this server; empty: they can"});
    f(16, "wait", n.wait,
      {"Why it has no process yet although it was started; none: it has one, or is on its way"});
    f(17, "wait_reason", n.wait_reason, {"The words of the cluster about that"});
    f(18, "own_usage", n.own_usage,
      {"As the process measured itself, or its container; null: not known"});
  }
};

}  // namespace muster
