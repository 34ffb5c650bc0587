#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cli/cluster/cluster_access.h"
#include "cli/state/cluster_target.h"
#include "tests/kubernetes/client/fake_api_server.h"
#include "tests/support/temp_dir.h"

namespace muster::cluster {

/// An API server with objects in memory, of the namespace "team": enough of it for jobs.
class FakeCluster {
 public:
  FakeCluster();

  /// The options that lead to it, with a kubeconfig of its own.
  ClusterTarget Target() const;
  Cluster* cluster() { return &cluster_; }

  /// By "secrets/ads-muster"; a null takes it away. "pods/x/log" is a text.
  void Put(const std::string& place, nlohmann::json object);
  /// Null: there is none.
  nlohmann::json At(const std::string& place) const;
  /// What is merged into each new Job.
  void SetStatusOfNewJobs(nlohmann::json status);
  /// Somebody else makes these objects just before the first POST of `place`.
  void MakeBefore(const std::string& place, std::map<std::string, nlohmann::json> objects);
  /// The next `times` requests for `place` find a server that is not well.
  void FailNext(const std::string& place, int times);
  /// The same of each new Pod.
  void SetStatusOfNewPods(nlohmann::json status);
  /// What a port of a pod says to whoever reaches it through a port-forward: first `hello`, and
  /// after a line has come, `answer`. Other ports say where the connection arrived.
  void SetPort(uint16_t port, std::string hello, std::string answer);
  /// All that has come to that port.
  std::string heard() const;
  /// "create pods/portforward".
  void Deny(const std::string& right);
  /// The requests that change something: "PATCH secrets/ads-muster".
  std::vector<std::string> changes() const;

 private:
  void Handle(const testing::FakeRequest& request, testing::FakeWire& wire);
  std::string Answer(const testing::FakeRequest& request);
  /// True if the request was for the port of SetPort.
  bool Converse(const testing::FakeRequest& request, testing::FakeWire& wire);
  std::string Review(const nlohmann::json& body) const MUSTER_REQUIRES(mutex_);
  std::string List(const std::string& plural) const MUSTER_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, nlohmann::json> objects_ MUSTER_GUARDED_BY(mutex_);
  std::set<std::string> denied_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, std::map<std::string, nlohmann::json>> rivals_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, int> failures_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::string> changes_ MUSTER_GUARDED_BY(mutex_);
  nlohmann::json job_status_ MUSTER_GUARDED_BY(mutex_);
  nlohmann::json pod_status_ MUSTER_GUARDED_BY(mutex_);
  uint16_t port_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::string hello_ MUSTER_GUARDED_BY(mutex_);
  std::string answer_ MUSTER_GUARDED_BY(mutex_);
  std::string heard_ MUSTER_GUARDED_BY(mutex_);
  testing::TempDir folder_;
  testing::FakeApiServer server_;
  Cluster cluster_;
};

}  // namespace muster::cluster
