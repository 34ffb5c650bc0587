#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "master/core/core_options.h"
#include "tests/sim/group/group_judge.h"
#include "tests/sim/group/group_model.h"
#include "tests/sim/machine/network.h"
#include "tests/sim/machine/scheduler.h"
#include "tests/sim/machine/sim_disk.h"
#include "tests/sim/machine/sim_journal.h"
#include "tests/sim/machine/sim_topic.h"
#include "tests/sim/machine/trace.h"
#include "tests/sim/oracle.h"
#include "tests/sim/probes.h"
#include "tests/sim/workload.h"

namespace muster::sim {

class SimMaster;
class SimMember;
class SimServer;

/// Values that a seed draws once: sizes and speeds of the job.
struct Knobs {
  uint32_t partitions = 4, servers = 2, lanes = 1, workers = 3, loops = 2;
  uint32_t shards_ahead = 2, unacknowledged_max = 4, prefetch = 2;
  nanoseconds compute_max{milliseconds(300)};
  nanoseconds sync_max{milliseconds(5)};
  nanoseconds disk_max{milliseconds(50)};
  /// Messages are encoded and decoded on their way.
  bool wire = false;
  /// Connections begin with a greeting that names the server's incarnation, as the real ones do;
  /// otherwise a request reaches the process that has the address by then. The protocol must not
  /// need it.
  bool greets = true;
  /// Lanes serve requests and copy images in slices of a row or a few, with others in between; now
  /// and then a connection ends between two slices.
  bool slices = false;
  /// Shards that a step of the master commits at most.
  size_t commits_at_once = CoreLimits().commits_at_once;
  /// Epochs of a dataset that the master knows at most, before it thins them out.
  size_t epochs_known = CoreLimits().epochs_known;
  /// The supervisor kills what the master calls lost with a chance of 1 in this, every 200 ms.
  uint32_t patience = 3;
  /// Answers of the master leave out what may come later (late_news.h).
  bool late_news = false;
  /// Workers stand still around a restart of the master.
  bool busy_grace = false;
  /// The job has a dataset that is a topic.
  bool stream = false;
  /// The job keeps the weights of its epochs; each begins when the one before has ended.
  bool keeps_epochs = false;
  bool losses = false;  // retention of the topic strikes before what is COMMITTED
  /// The workers are members of a synchronous group. `servers` may be 0: it has no tables.
  std::optional<GroupOptions> group;
  /// Sums do not depend on how the minibatches are divided.
  bool group_exact = true;
  /// All trainers make the same initial state.
  bool group_same_start = true;
  /// The trainer of this slot applies one step otherwise than the others: this one or, if it
  /// applies none in between, a later one. Nothing else goes wrong, so the others are most.
  struct OddApply {
    uint32_t slot = 0;
    uint64_t step = 0;
  };
  std::optional<OddApply> group_odd_apply;
  JobSpec::Leases leases;
  JobSpec::Servers server_times;
  milliseconds snapshot_interval{300}, snapshot_timeout{1'500};
};

/// How a process ended.
struct ProcessEnd {
  uint32_t signal = 0;
  uint32_t exit_code = 0;
};

/// One simulated world as its actors see it: time, links, disk, journal, records.
struct Env {
  Env(uint64_t seed, const Knobs& knobs, bool print);

  const uint64_t seed;
  const Knobs knobs;
  const Workload& workload;
  Probes probes;
  Scheduler scheduler;
  Network network;
  Trace trace;
  SimDisk disk;
  SimTopic topic;
  Oracle oracle;
  /// Of a group: what its members have stored, who they are, and what their states must be.
  ModelStore model_store;
  std::map<GroupProcess, SimMember*> members;
  bool odd_applied = false;
  GroupJudge judge;
  SimJournal journal;
  /// Evaluate shards that some trainer has begun.
  std::set<ShardId> evaluated;
  /// Worker processes that have said hello, by slot.
  std::map<uint32_t, std::vector<ProcessRef>> greeted;
  /// Leases of stopped workers, after everything that they pushed is forgotten.
  std::set<LeaseToken> forgotten;
  /// The newest call that the current master has had of each worker process.
  std::map<uint64_t, uint64_t> heard;
  /// Trainers fail now and then, and so does the rest.
  bool faulty = true;

  /// The process in the master's slot, or null.
  SimMaster* master = nullptr;
  /// A master whose machine is lost for the slot, while some still reach it.
  struct LostMaster {
    SimMaster* master = nullptr;
    std::set<Endpoint> reached_by;
    TimePoint until{};
  };
  std::vector<LostMaster> lost_masters;
  /// Every server process so far.
  std::vector<std::unique_ptr<SimServer>> servers;
  /// A process ends by itself; the supervisor listens.
  std::function<void(const ProcessRef&, const ProcessEnd&)> exited;

  /// A separate random stream for every use.
  Rng Stream(uint64_t a, uint64_t b = 0) const { return Rng(HashWords(seed, a, b)); }
  /// The living server process with this incarnation, or null.
  SimServer* FindServer(ServerId id, ServerIncarnation incarnation, bool dead_too = false) const;
  /// The master that a call from there reaches, or null.
  SimMaster* MasterFor(Endpoint from) const;
  /// The server that takes a request for it, or null.
  SimServer* Listener(ServerId id, ServerIncarnation incarnation) const;
  void Exit(const ProcessRef& process, const ProcessEnd& end);
  template <typename... Args>
  void Say(const Process& process, fmt::format_string<Args...> format, Args&&... args) {
    trace.Add(scheduler.now(), process.name, format, std::forward<Args>(args)...);
  }
};

}  // namespace muster::sim
