#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "scaler/rest/job_api.h"

namespace muster::scaler::rest::testing {

/// A job of two workers and two servers that exists in memory only: orders change what the next
/// question is answered with, and each is an event. Thread-safe.
class FakeJobApi final : public JobApi {
 public:
  FakeJobApi();

  absl::StatusOr<Job> GetJob() override;
  absl::StatusOr<DatasetList> Datasets() override;
  absl::StatusOr<ShardPage> Shards(const ShardQuery& query) override;
  absl::StatusOr<ShardMap> MapOfShards(uint32_t dataset, uint32_t epoch) override;
  absl::StatusOr<NodeList> Nodes() override;
  absl::StatusOr<Node> GetNode(const std::string& node) override;
  absl::StatusOr<LogChunk> Logs(const std::string& node, const LogQuery& query) override;
  absl::StatusOr<PartitionPage> Partitions(uint64_t offset, uint32_t limit) override;
  absl::StatusOr<EventList> Events(uint64_t after, uint32_t limit) override;
  absl::StatusOr<Explanation> Explain(uint64_t event_id) override;
  absl::StatusOr<Samples> GetSamples(const SampleQuery& query) override;
  absl::StatusOr<PolicyList> Policies() override;

  absl::StatusOr<Event> Drain(const std::string& reason) override;
  absl::StatusOr<Event> Cancel(const std::string& reason) override;
  absl::StatusOr<Event> RestartNode(const std::string& node, const RestartOrder& order) override;
  absl::StatusOr<Event> DrainNode(const std::string& node, const std::string& reason) override;
  absl::StatusOr<Event> ResizeNode(const std::string& node, const ResizeOrder& order) override;
  absl::StatusOr<Event> ScaleWorkers(uint32_t workers, const std::string& reason) override;
  absl::StatusOr<Event> RetryShards(const std::vector<std::string>& ids) override;
  absl::StatusOr<Event> PausePolicy(const std::string& policy, const std::string& reason) override;
  absl::StatusOr<Event> ResumePolicy(const std::string& policy, const std::string& reason) override;

  /// An event of the scaler's own, with a `because` of so many bytes.
  void AddEvent(size_t bytes = 20);
  /// From now on calls of GetJob() wait until Release().
  void Hold();
  void Release();
  /// Blocks until Events() is called.
  void AwaitAnotherEventCall();
  /// Blocks until so many calls of GetJob() have begun.
  void AwaitJobCalls(uint64_t count);
  /// From now on every question about the job is answered so; OK: as before.
  void Fail(absl::Status status);

 private:
  Event Add(Event event) MUSTER_REQUIRES(mutex_);
  Event Act(const std::string& action, const std::string& target, const std::string& reason)
      MUSTER_REQUIRES(mutex_);
  absl::StatusOr<Node*> Find(const std::string& node) MUSTER_REQUIRES(mutex_);
  absl::StatusOr<Event> SetPaused(const std::string& policy, bool paused,
                                  const std::string& reason);

  Mutex mutex_;
  CondVar changed_;
  Job job_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Dataset> datasets_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Shard> shards_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Node> nodes_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Event> events_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Policy> policies_ MUSTER_GUARDED_BY(mutex_);
  bool held_ MUSTER_GUARDED_BY(mutex_) = false;
  uint64_t event_calls_ MUSTER_GUARDED_BY(mutex_) = 0;
  uint64_t job_calls_ MUSTER_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::scaler::rest::testing
