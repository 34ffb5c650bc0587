#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "host/resources.h"
#include "proto/messages/node_place.h"
#include "proto/messages/node_role.h"
#include "proto/messages/node_state.h"

/// What policies see of a job. These are plain values. Sensors and the core fill them in, and a
/// recorded history can, too. A policy sees nothing else.
namespace muster::scaler {

/// What a synchronous group waits for from a worker.
enum class GroupPart : uint8_t {
  kNone,   // nothing, or there is no group
  kStep,   // its part of a step
  kLearn,  // that it takes the state, which other members offer
  kJoin,   // its first call: its process runs, but it has not joined the group
};

/// Running totals of one life of a worker's process.
struct WorkerTotals {
  uint64_t records = 0;      // trained
  uint64_t minibatches = 0;  // finished, of training and of evaluation
  std::chrono::microseconds computing{0};
  std::chrono::microseconds waiting_shards{0};
  std::chrono::microseconds waiting_pulls{0};
  std::chrono::microseconds waiting_pushes{0};
  uint32_t shards_held = 0;  // now: leases; 0 = it has no work
  /// The step of the group that waits for this worker, or that the worker must get the state of; 0
  /// = none.
  uint64_t awaited_step = 0;
  uint32_t peers_waiting = 0;               // members that have done their part of that step
  GroupPart group_part = GroupPart::kNone;  // now
  uint64_t group_moved = 0;                 // what other members have sent it
};

/// Running totals of one life of a server's process.
struct ServerTotals {
  uint64_t pulls = 0;                    // requests
  uint64_t rows = 0;                     // pulled
  uint64_t parts = 0;                    // applied or skipped
  uint64_t moved_bytes = 0;              // of pulls, pushes and their answers; 0: not known
  std::chrono::microseconds serving{0};  // wall time, of all lanes
  /// Requests answered, and the sum of their round trips, as its workers measured them.
  uint64_t peer_requests = 0;
  std::chrono::microseconds peer_round_trip{0};
  uint32_t partitions_serving = 0;  // now: those that it has restored
};

/// One reading of a node.
struct NodeSample {
  TimePoint at;
  std::chrono::microseconds cpu{0};        // running total
  std::chrono::microseconds throttled{0};  // running total: held back by its CPU quota
  /// Memory that the kernel cannot take back at once. The page cache of files that are not in use
  /// is left out, because the node does not need it.
  uint64_t memory_bytes = 0;
  uint64_t memory_peak_bytes = 0;
  uint64_t memory_limit_bytes = 0;      // as the kernel enforces it; 0 = none
  double memory_pressure_percent = -1;  // PSI "some", 10 s; -1 = unknown
  double cpu_pressure_percent = -1;
  WorkerTotals worker;  // all 0 for servers
  ServerTotals server;  // all 0 for workers
};

/// A node in its present life.
struct NodeView {
  std::string name;
  NodeRole role = NodeRole::kWorker;
  uint32_t start = 0;  // the number of its newest start, from 1; 0: never started
  NodeState state = NodeState::kPlanned;  // never kFinished
  /// Its partitions were snapshotted on request, and it still serves. Only servers have this.
  bool drained = false;
  TimePoint started_at;
  Resources limits;                 // in force now, or of the next start
  Resources requested;              // by the job file
  Resources min;                    // bounds of `limits`
  Resources max;                    // 0 = bounded by budget and machine only
  std::vector<NodeSample> samples;  // of this life, oldest first
  /// Only for kWaiting: why it waits, since when, and the cluster's own words about it.
  NodeWait wait = NodeWait::kNone;
  TimePoint waits_since;
  std::string wait_reason;
  /// The limits that its newest process ran with. None if it never had a process.
  std::optional<Resources> placed_limits;
};

enum class EndCause : uint8_t {
  kKernelOutOfMemory,  // the kernel, and the group's counter says so
  kOwnOutOfMemory,     // ourselves: without a group, polling found it above its limit
  kProgram,            // the program's own failure
  kPlatform,           // killed from outside: the machine's owner, a preemption
  kAsked,              // we asked it to end, or the user did
  kClean,              // by itself, well
  kNotStarted,         // it never ran: the machine was short of disk, memory or descriptors
  kDisrupted,          // the cluster took its place away
};
std::string ToString(EndCause cause);  // "kernel out of memory", ...

/// A life that is over.
struct NodeEnd {
  std::string node;
  NodeRole role = NodeRole::kWorker;
  uint32_t start = 0;
  TimePoint at;
  EndCause cause = EndCause::kProgram;
  std::string exit;  // "SIGKILL", "exit 1"
  /// True if the master saw it run and the job made progress meanwhile.
  bool progressed = false;
  /// How many ends without progress its keeper had counted in a row before this one.
  uint32_t exits = 0;
  uint64_t memory_peak_bytes = 0;
  uint64_t memory_limit_bytes = 0;            // 0 = none: the whole machine was short
  Disruption disruption = Disruption::kNone;  // kDisrupted: how
  // These are for people only. Histories do not have them.
  uint64_t pid = 0;             // 0: it never ran, or it is not known
  std::string meaning;          // what such an exit usually means
  std::string last_words;       // the last lines of its log
  std::string disruption_text;  // the words of the cluster
};

/// What the job does now. Only rates from kTraining can be compared.
enum class Activity : uint8_t {
  kStarting,
  kTraining,
  kEvaluating,  // workers hold shards of an evaluation
  kReplaying,   // a server restores, or minibatches that its snapshots lack run again
  kDraining,
  kOver,
};

/// The actions that policies propose. They are the first of AllActions() (scaler/model/orders.h),
/// in the same order.
enum class Action : uint8_t {
  kRestart,
  kResize,
  kScale,
  kStopJob,
  kDrain,
  kDumpStacks,
};
std::string ToString(Action action);

/// A decision that was carried out (not one of a dry run).
struct ActionTaken {
  std::string policy;
  std::string target;
  Action action = Action::kRestart;
  TimePoint at;
  /// For kScale: the numbers of workers. If both are equal, they are not known.
  uint32_t workers_before = 0;
  uint32_t workers_after = 0;
};

/// What earlier runs of the same job needed, per node of a role.
struct RoleHistory {
  uint64_t memory_peak_bytes = 0;  // the largest of any node
  double cpus_p95 = 0;             // cores used, 95th percentile over seconds
  uint32_t runs = 0;
};

struct JobView {
  TimePoint now;
  Activity activity = Activity::kStarting;
  /// If false, the master is away, so the view lacks what it knows of the nodes.
  bool master_heard = true;
  /// True if a topic of the job cannot be reached. Workers that wait then are not to blame.
  bool sources_away = false;
  std::vector<NodeView> nodes;
  /// Ends and actions since the last step, oldest first.
  std::vector<NodeEnd> ends;
  std::vector<ActionTaken> taken;
  /// What all nodes together may use. Memory limits must fit into budget and machine. CPU limits
  /// must fit into the budget only, because a machine shares its cores out by itself.
  Resources budget;
  Resources machine;
  /// Cores of the machine that no program used over the newest seconds. None if this is not known.
  std::optional<double> idle_cpus;
  /// The smallest and largest number of workers. If both are equal, the number is fixed.
  uint32_t workers_min = 0;
  uint32_t workers_max = 0;
  /// With fewer members, a synchronous group makes no step. 0 if the job has no group.
  uint32_t members_min = 0;
  uint64_t records_trained = 0;
  uint64_t records_left = 0;  // 0 = unknown; of a topic, only known records count
  /// If the job learns from a topic that gets more records: how many records wait to be trained, in
  /// the topic and in other data. None if there is no such topic, or if the number is not known.
  std::optional<uint64_t> backlog_records;
  std::map<NodeRole, RoleHistory> history;
};

/// nullptr if there is none with this name.
const NodeView* FindNode(const JobView& view, const std::string& name);

}  // namespace muster::scaler
