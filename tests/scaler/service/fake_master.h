#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/admin_client.h"
#include "base/mutex.h"

namespace muster::scaler::testing {

/// A master that believes what it is told of nodes, and whose job goes on until the test says
/// otherwise. Thread-safe.
class FakeMaster {
 public:
  FakeMaster() { status_.set_state(v1::JOB_STATE_RUNNING); }

  /// Unless it has ended.
  void End(v1::JobState state) {
    MutexLock lock(&mutex_);
    if (status_.state() == v1::JOB_STATE_RUNNING) status_.set_state(state);
  }
  /// "running", "lost", as if the node's process had been heard, or not.
  void SetNode(const std::string& node, const std::string& state) {
    MutexLock lock(&mutex_);
    NodeOf(node)->set_state(state);
  }
  /// What it was told of nodes, oldest first.
  std::vector<v1::ReportNodeRequest> Told(const std::string& node, const std::string& what) {
    MutexLock lock(&mutex_);
    std::vector<v1::ReportNodeRequest> told;
    std::copy_if(told_.begin(), told_.end(), std::back_inserter(told), [&](const auto& report) {
      return report.node() == node && report.what() == what;
    });
    return told;
  }
  v1::JobStatus status() {
    MutexLock lock(&mutex_);
    return status_;
  }

  class Client;
  std::unique_ptr<AdminClient> MakeClient();

 private:
  v1::NodeStatus* NodeOf(const std::string& name) MUSTER_REQUIRES(mutex_) {
    for (v1::NodeStatus& node : *status_.mutable_nodes()) {
      if (node.name() == name) return &node;
    }
    v1::NodeStatus* const node = status_.add_nodes();
    node->set_name(name);
    return node;
  }
  void Hear(const v1::ReportNodeRequest& report) {
    MutexLock lock(&mutex_);
    told_.push_back(report);
    v1::NodeStatus* const node = NodeOf(report.node());
    node->set_role(report.role());
    node->set_start(report.start());
    node->set_pid(report.pid());
    node->set_state(report.what() == "exited" ? "exited" : "running");
  }
  void Fail(const std::string& reason) {
    MutexLock lock(&mutex_);
    status_.set_state(v1::JOB_STATE_FAILED);
    status_.set_reason(reason);
  }

  Mutex mutex_;
  v1::JobStatus status_ MUSTER_GUARDED_BY(mutex_);
  std::vector<v1::ReportNodeRequest> told_ MUSTER_GUARDED_BY(mutex_);
};

class FakeMaster::Client final : public AdminClient {
 public:
  explicit Client(FakeMaster* master) : master_(master) {}
  absl::StatusOr<v1::JobStatus> GetStatus() override { return master_->status(); }
  absl::Status ReportNode(const v1::ReportNodeRequest& request) override {
    master_->Hear(request);
    return absl::OkStatus();
  }
  absl::Status Cancel(const v1::CancelRequest& request) override {
    master_->Fail(request.reason());
    return absl::OkStatus();
  }
  absl::Status Drain() override { return No(); }
  absl::Status ResumeNode(const v1::ResumeNodeRequest&) override { return No(); }
  absl::StatusOr<v1::ListShardsResponse> ListShards(const v1::ListShardsRequest&) override {
    return No();
  }
  absl::StatusOr<v1::GetShardMapResponse> GetShardMap(const v1::GetShardMapRequest&) override {
    return No();
  }
  absl::StatusOr<v1::RetryShardsResponse> RetryShards(const v1::RetryShardsRequest&) override {
    return No();
  }
  absl::StatusOr<v1::ListEventsResponse> ListEvents(const v1::ListEventsRequest&) override {
    return No();
  }
  absl::StatusOr<v1::DrainNodeResponse> DrainNode(const v1::DrainNodeRequest&) override {
    return No();
  }
  absl::StatusOr<v1::ListPartitionsResponse> ListPartitions(
      const v1::ListPartitionsRequest&) override {
    return No();
  }
  absl::StatusOr<v1::GetManifestResponse> GetManifest() override { return No(); }

 private:
  static absl::Status No() { return absl::UnimplementedError("not of this master"); }
  FakeMaster* const master_;
};

inline std::unique_ptr<AdminClient> FakeMaster::MakeClient() {
  return std::make_unique<Client>(this);
}

}  // namespace muster::scaler::testing
