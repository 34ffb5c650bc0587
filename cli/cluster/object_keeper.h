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

/// Removes from an object what the API server has added, so that it can be made again after it was
/// deleted. Pure.
nlohmann::json AsNew(nlohmann::json object);

/// Puts back objects that a living job needs and somebody has deleted, while its `muster run`
/// watches: the objects that the run has made, and the Secrets as they were. It does not make the
/// Job and the claims again, because what was in them is gone. It also reports pods that do not
/// start. Thread-safe.
class ObjectKeeper {
 public:
  static constexpr std::chrono::seconds kInterval{10};

  /// `objects` are those of the file of `job`. It reads the Secrets now. Secrets that it cannot
  /// read are not put back. `cluster` must outlive this.
  ObjectKeeper(Cluster* cluster, std::string job, std::vector<nlohmann::json> objects);

  /// If the job lives and kInterval has passed since the last time, it looks for missing objects
  /// and for pods that do not start.
  void OnLook(const JobLook& look);
  /// Puts back missing objects now.
  void PutBack();
  /// Notes about what was done since the last call.
  std::vector<std::string> TakeNotes();

 private:
  /// Returns false if the API server is away.
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
