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

/// What policies see of a job: plain values that sensors and the core fill in, and that a recorded
/// history can fill in as well. No policy sees anything else.
namespace muster::scaler {

/// What a synchronous group awaits from a worker.
enum class GroupPart : uint8_t {
  kNone,   // nothing, or there is no group
  kStep,   // its part of a step
  kLearn,  // that it gets the state, which others offer it
  kJoin,   // its first call: it runs, and has not joined the group
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
  /// Now: the step that its group awaits from it, or that it is to learn next; 0 = none.
  uint64_t awaited_step = 0;
  uint32_t peers_waiting = 0;               // members that have done their part of it
  GroupPart group_part = GroupPart::kNone;  // now
  uint64_t group_moved = 0;                 // what it has got from other members
};

/// Running totals of one life of a server's process.
struct ServerTotals {
  uint64_t pulls = 0;                    // requests
  uint64_t rows = 0;                     // pulled
  uint64_t parts = 0;                    // applied or skipped
  uint64_t moved_bytes = 0;              // of pulls, pushes and their answers; 0: not known
  std::chrono::microseconds serving{0};  // wall time, of all lanes
  /// As its workers see it: requests answered, and the sum of their round trips.
  uint64_t peer_requests = 0;
  std::chrono::microseconds peer_round_trip{0};
  uint32_t partitions_serving = 0;  // now: those that it has restored
};

/// One reading of a node.
struct NodeSample {
  TimePoint at;
  std::chrono::microseconds cpu{0};        // running total
  std::chrono::microseconds throttled{0};  // running total: held back by its CPU quota
  /// What the kernel cannot take back at once: the page cache of files not in use is no need.
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
  /// A server: its partitions were snapshotted on request; it still serves.
  bool drained = false;
  TimePoint started_at;
  Resources limits;                 // in force now, or of the next start
  Resources requested;              // by the job file
  Resources min;                    // bounds of `limits`
  Resources max;                    // 0 = bounded by budget and machine only
  std::vector<NodeSample> samples;  // of this life, oldest first
  /// kWaiting: why, since when, and in the words of the cluster.
  NodeWait wait = NodeWait::kNone;
  TimePoint waits_since;
  std::string wait_reason;
  /// The limits within which it last had a process; none: it never had one.
  std::optional<Resources> placed_limits;
};

enum class EndCause : uint8_t {
  kKernelOutOfMemory,  // the kernel, and the group's counter says so
  kOwnOutOfMemory,     // we did, where no group can be made: polling found it above its limit
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
  /// The master saw it run, and the job made progress meanwhile.
  bool progressed = false;
  /// Ends in a row without progress before this one, as its keeper counted them.
  uint32_t exits = 0;
  uint64_t memory_peak_bytes = 0;
  uint64_t memory_limit_bytes = 0;            // 0 = none: the whole machine was short
  Disruption disruption = Disruption::kNone;  // kDisrupted: how
  // For people alone; histories do not have them.
  uint64_t pid = 0;             // 0: it never ran, or it is not known
  std::string meaning;          // of such an exit, usually
  std::string last_words;       // of its log
  std::string disruption_text;  // the words of the cluster
};

/// What the job does now. Rates can be compared within kTraining only.
enum class Activity : uint8_t {
  kStarting,
  kTraining,
  kEvaluating,  // some shards in the hands of workers are of an evaluation
  kReplaying,   // a server restores, or minibatches that its snapshots lack run again
  kDraining,
  kOver,
};

/// Those of AllActions() (scaler/model/orders.h) that policies propose: the first, in its order.
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
  /// kScale: the numbers of workers; equal: not known.
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
  /// False: the master is away, and what it knows of the nodes is not seen.
  bool master_heard = true;
  /// A topic of the job cannot be reached, so workers wait through no fault of their own.
  bool sources_away = false;
  std::vector<NodeView> nodes;
  /// Since the last step, oldest first.
  std::vector<NodeEnd> ends;
  std::vector<ActionTaken> taken;
  /// For all nodes together. Memory limits must fit into both; CPU limits into the budget only: a
  /// machine shares its cores out by itself.
  Resources budget;
  Resources machine;
  /// Cores of the machine that were idle over the newest seconds, be it this job or another
  /// program. Nothing: not known.
  std::optional<double> idle_cpus;
  /// How many workers there may be; both equal = fixed.
  uint32_t workers_min = 0;
  uint32_t workers_max = 0;
  /// Of a synchronous group: with fewer members, it makes no step. 0: the job has no group.
  uint32_t members_min = 0;
  uint64_t records_trained = 0;
  uint64_t records_left = 0;  // 0 = unknown; of a topic only those that are known already
  /// It learns from a topic to which more will come: the records that wait to be trained, there and
  /// in other data. Nothing: it does not, or they are not known.
  std::optional<uint64_t> backlog_records;
  std::map<NodeRole, RoleHistory> history;
};

/// nullptr if there is none with this name.
const NodeView* FindNode(const JobView& view, const std::string& name);

}  // namespace muster::scaler
