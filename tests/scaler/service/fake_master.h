#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/admin_client.h"
#include "base/mutex.h"

namespace muster::scaler::testing {

/// A master that believes what it is told of nodes, and whose job continues until the test says
/// otherwise. Thread-safe.
class FakeMaster {
 public:
  FakeMaster() { status_.state = JobState::kRunning; }

  /// Unless it has ended.
  void End(JobState state) {
    MutexLock lock(&mutex_);
    if (status_.state == JobState::kRunning) status_.state = state;
  }
  /// kRunning, kLost, as if the node's process had been heard, or not.
  void SetNode(const std::string& node, NodeState state) {
    MutexLock lock(&mutex_);
    NodeOf(node)->state = state;
  }
  void Edit(const std::string& node, const std::function<void(NodeStatus*)>& edit) {
    MutexLock lock(&mutex_);
    edit(NodeOf(node));
  }
  /// The reports about nodes that it got, oldest first.
  std::vector<v1::ReportNodeRequest> Told(const std::string& node, const std::string& what) {
    MutexLock lock(&mutex_);
    std::vector<v1::ReportNodeRequest> told;
    std::copy_if(told_.begin(), told_.end(), std::back_inserter(told), [&](const auto& report) {
      return report.node() == node && report.what() == what;
    });
    return told;
  }
  JobStatus status() {
    MutexLock lock(&mutex_);
    return status_;
  }

  /// How often it was told to drain the job, which it does not do.
  int drains() {
    MutexLock lock(&mutex_);
    return drains_;
  }

  class Client;
  std::unique_ptr<AdminClient> MakeClient();

 private:
  NodeStatus* NodeOf(const std::string& name) MUSTER_REQUIRES(mutex_) {
    for (NodeStatus& node : status_.nodes) {
      if (node.name == name) return &node;
    }
    NodeStatus& node = status_.nodes.emplace_back();
    node.name = name;
    return &node;
  }
  void Hear(const v1::ReportNodeRequest& report) {
    MutexLock lock(&mutex_);
    told_.push_back(report);
    NodeStatus* const node = NodeOf(report.node());
    node->role = report.role();
    if (report.what() == "held") {
      EXPECT_TRUE(FromWord(report.cause(), &node->wait));
      return;
    }
    node->start = report.start();
    node->pid = report.pid();
    node->state = report.what() == "exited" ? NodeState::kExited : NodeState::kRunning;
  }
  void Fail(const std::string& reason) {
    MutexLock lock(&mutex_);
    status_.state = JobState::kFailed;
    status_.reason = reason;
  }

  Mutex mutex_;
  JobStatus status_ MUSTER_GUARDED_BY(mutex_);
  int drains_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::vector<v1::ReportNodeRequest> told_ MUSTER_GUARDED_BY(mutex_);
};

class FakeMaster::Client : public AdminClient {
 public:
  explicit Client(FakeMaster* master) : master_(master) {}
  void End() override {}
  absl::StatusOr<JobStatus> GetStatus() override { return master_->status(); }
  absl::Status ReportNode(const v1::ReportNodeRequest& request) override {
    master_->Hear(request);
    return absl::OkStatus();
  }
  absl::Status Cancel(const v1::CancelRequest& request) override {
    master_->Fail(request.reason());
    return absl::OkStatus();
  }
  absl::StatusOr<v1::JoinNodeResponse> JoinNode(const v1::JoinNodeRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::Status Drain() override {
    const MutexLock lock(&master_->mutex_);
    ++master_->drains_;
    return absl::OkStatus();
  }
  absl::Status ResumeNode(const v1::ResumeNodeRequest&) override { return No(); }
  absl::StatusOr<ShardPage> ListShards(const v1::ListShardsRequest&) override { return No(); }
  absl::StatusOr<ShardMap> GetShardMap(const v1::GetShardMapRequest&) override { return No(); }
  absl::StatusOr<v1::RetryShardsResponse> RetryShards(const v1::RetryShardsRequest&) override {
    return No();
  }
  absl::StatusOr<MasterEvents> ListEvents(const v1::ListEventsRequest&) override { return No(); }
  absl::StatusOr<v1::DrainNodeResponse> DrainNode(const v1::DrainNodeRequest&) override {
    return No();
  }
  absl::StatusOr<PartitionList> ListPartitions(const v1::ListPartitionsRequest&) override {
    return No();
  }
  absl::StatusOr<v1::GetManifestResponse> GetManifest(const v1::GetManifestRequest&) override {
    return No();
  }

 private:
  static absl::Status No() { return absl::UnimplementedError("not of this master"); }
  FakeMaster* const master_;
};

inline std::unique_ptr<AdminClient> FakeMaster::MakeClient() {
  return std::make_unique<Client>(this);
}

}  // namespace muster::scaler::testing
