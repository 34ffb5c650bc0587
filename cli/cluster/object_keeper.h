#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cli/cluster/cluster_access.h"
#include "cli/cluster/job_look.h"

namespace muster::cluster {

/// An object as one makes it again after it was deleted: without what the API server has added.
/// Pure.
nlohmann::json AsNew(nlohmann::json object);

/// Puts back what a living job needs and somebody has deleted, while its `muster run` looks on: the
/// objects that the run has made, and the Secrets as they were. The Job and the claims are not
/// made again: what was in them is gone. Also tells of pods that do not start. Thread-safe.
class ObjectKeeper {
 public:
  static constexpr std::chrono::seconds kInterval{10};

  /// `objects`: of the file of `job`. Reads the Secrets now: those that cannot be had are not kept.
  /// `cluster` must outlive this.
  ObjectKeeper(Cluster* cluster, std::string job, std::vector<nlohmann::json> objects);

  /// Looks for what is missing, and for pods that do not start, kInterval after the last time, if
  /// the job lives.
  void OnLook(const JobLook& look);
  /// Puts back what is missing, now.
  void PutBack();
  /// What was done since the last call.
  std::vector<std::string> TakeNotes();

 private:
  /// False: the API server is away.
  bool PutBack(const nlohmann::json& object);
  void Say(std::string note);

  Cluster* const cluster_;
  const std::string job_;
  const std::vector<nlohmann::json> kept_;
  Mutex mutex_;
  std::optional<TimePoint> looked_at_ MUSTER_GUARDED_BY(mutex_);
  std::set<std::string> said_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::string> notes_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::cluster
