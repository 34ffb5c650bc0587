#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/master_members.h"
#include "benchmarks/measured_owner.h"
#include "master/sources/source_catalog.h"

namespace muster {

struct MembersSizes {
  uint32_t workers = 1'000;
  uint32_t servers = 256;
  uint32_t partitions = 4'096;
  uint64_t shards = 1'000'000;
  /// Shards that are DONE and not COMMITTED when servers die.
  uint64_t done = 10'000;
  /// The steady part, by the clock of the job: every partition is snapshotted once in 10 s.
  std::chrono::seconds steady{20};
};

/// What happened in a part of the job's life.
struct MembersPhase {
  OwnerCosts costs;
  /// By the clock of the job.
  std::chrono::nanoseconds lasted{0};
};

/// A job whose master is real, up to the network, and whose workers and servers are simulated. Time
/// goes by as fast as the master's owner thread can follow. Members ask as often as the real ones,
/// and wait for each answer. Ends the program when anything goes wrong. Not thread-safe.
class MembersJob {
 public:
  /// All members join; every partition is served.
  MembersJob(const MembersSizes& sizes, const std::string& folder);

  /// No member joins or dies, and workers make no progress.
  MembersPhase Steady(std::chrono::nanoseconds time);
  /// Workers finish shards until so many are DONE and not COMMITTED.
  MembersPhase Finish(uint64_t done);
  uint64_t done() const { return owner_->core().ledger().queue().done().size(); }
  /// Whether every worker's map is the master's.
  bool EveryWorkerHasTheMap() const;
  /// Partitions whose server has told the master that it serves them.
  uint32_t served() const;
  struct Restart {
    /// The servers are away, and workers ask for a newer map.
    MembersPhase away;
    /// From the first registration until every partition is served and every worker knows where.
    MembersPhase back;
  };
  /// `count` servers die at once, from number `first`, and come back one after the other.
  Restart RestartServers(uint32_t first, uint32_t count);
  struct MasterRestart {
    std::chrono::nanoseconds open_cpu{0};
    std::chrono::nanoseconds open_wall{0};
    /// From then on, until all members were heard.
    MembersPhase heard;
  };
  /// The master dies; the next one continues from the journal.
  MasterRestart RestartMaster();

 private:
  struct Worker {
    SimulatedWorker it;
    TimePoint due;
    TimePoint peers_due;
    bool heard = true;
  };
  struct Server {
    SimulatedServer it;
    TimePoint due;
    TimePoint traffic_due;
    bool alive = true;
    bool heard = true;
  };
  void OpenMaster();
  void AskFor(Worker* worker, SimulatedWorker::Wish wish);
  void AskFor(Server* server);
  /// All members that are due call once.
  void Turn();
  bool WantsMap(const Worker& worker) const;
  void StartServer(Server* server);
  void ReportExit(const Server& server);
  bool EverybodyKnows() const;
  template <typename Condition>
  MembersPhase Until(Condition&& condition);

  const MembersSizes sizes_;
  const std::string folder_;
  const SourceCatalog sources_;
  CoreOptions options_;
  std::unique_ptr<MeasuredOwner> owner_;
  TimePoint now_{std::chrono::hours(1)};
  std::vector<Worker> workers_;
  std::vector<Server> servers_;
  /// True if servers are away, or are back but not all workers know it.
  bool restarting_ = false;
  /// The map that names every one of them; none while one is away.
  MapVersion awaited_;
};

}  // namespace muster
