#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::testing {

/// A small model of what an API server does with pods, and of the machines that run them. It does
/// nothing by itself. Not thread-safe.
class ModelCluster {
 public:
  struct Reply {
    int code = 200;
    nlohmann::json body;
  };

  // Calls of clients.
  Reply Create(nlohmann::json pod);
  Reply Get(const std::string& name) const;
  /// `options` is the body of a DELETE.
  Reply Delete(const std::string& name, const nlohmann::json& options);
  /// A strategic merge of the first container's resources.
  Reply Resize(const std::string& name, const nlohmann::json& patch);
  const std::map<std::string, nlohmann::json>& pods() const { return pods_; }
  std::string version() const { return std::to_string(version_); }
  /// Every event of a watch since the beginning.
  const std::vector<nlohmann::json>& events() const { return events_; }

  /// Creates are refused: a quota allows no more pods.
  bool quota_used_up = false;
  /// And so: the pods that are not on a list of rights.
  bool forbidden = false;
  /// False: it was deleted without its pods.
  bool job_is_there = true;
  /// Resizes are answered with 200, but the machine can never do them.
  bool infeasible = false;

  // What happens to a pod that is there.
  void Run(const std::string& name, const std::string& machine = "n1");
  void End(const std::string& name, int code, const std::string& reason = "Error",
           const std::string& message = "");
  /// Pending for a reason of the scheduler.
  void SayUnschedulable(const std::string& name, const std::string& message);
  /// Its container waits ("ErrImagePull").
  void SayWaiting(const std::string& name, const std::string& reason, const std::string& message);
  void Evict(const std::string& name);
  /// Sets the condition DisruptionTarget and a deletionTimestamp.
  void Disrupt(const std::string& name, const std::string& reason);
  /// Its machine falls silent, and the node controller and the taint manager notice that.
  void Lose(const std::string& name);
  /// The object goes, whatever its process does; its machine confirms a deletion so.
  void Remove(const std::string& name);
  void Hold(const std::string& name) { held_.insert_or_assign(name, true); }
  void Change(const std::string& name, const std::function<void(nlohmann::json*)>& change);

 private:
  void Tell(const std::string& type, nlohmann::json* pod);

  uint64_t version_ = 1;
  uint64_t last_uid_ = 0;
  std::map<std::string, nlohmann::json> pods_;
  std::map<std::string, bool> held_;  // by a finalizer
  std::vector<nlohmann::json> events_;
};

/// The status that the client makes of an answer.
absl::Status StatusOf(const ModelCluster::Reply& reply);

}  // namespace muster::testing
