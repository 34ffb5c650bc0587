#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "scaler/rest/job_api.h"

namespace muster::scaler::rest::testing {

/// A job of two workers and two servers that exists in memory only: orders change what the next
/// question is answered with, and each is an event. Thread-safe.
class FakeJobApi final : public JobApi {
 public:
  struct Options {
    uint64_t shards_per_epoch = 100;
    uint32_t partitions = 64;
    /// Of a topic that one dataset is; another is one with trouble. 0: all datasets are files.
    uint32_t topic_partitions = 0;
    /// Of a long job, which is in the last one and overfitting; 0: two, and no metric of a test.
    uint32_t epochs = 0;
    /// Its workers are a synchronous group, with a third process that has no place.
    bool group = false;
    /// Orders take effect step by step (Advance()) and have outcomes; an ended job takes none.
    /// Otherwise they are done at once, and any job takes any.
    bool live = false;
    uint64_t begin_wall_us = 1'767'225'600'000'000;  // 2026-01-01
  };
  FakeJobApi() : FakeJobApi(Options{}) {}
  explicit FakeJobApi(const Options& options);

  absl::StatusOr<std::shared_ptr<const Picture>> Look() override;
  absl::StatusOr<ShardPage> Shards(const ShardQuery& query) override;
  absl::StatusOr<ShardMap> MapOfShards(uint32_t dataset, uint32_t epoch) override;
  absl::StatusOr<LogChunk> Logs(const std::string& node, const LogQuery& query) override;
  absl::StatusOr<PartitionPage> Partitions(uint64_t offset, uint32_t limit) override;
  absl::StatusOr<EventList> Events(uint64_t after, uint32_t limit) override;
  absl::StatusOr<Explanation> Explain(uint64_t event_id) override;
  absl::StatusOr<Samples> GetSamples(const SampleQuery& query) override;

  absl::StatusOr<Event> Give(const Wish& wish) override;

  // Parts of what Look() gives.
  absl::StatusOr<Job> GetJob();
  absl::StatusOr<DatasetList> Datasets();
  absl::StatusOr<NodeList> Nodes();
  absl::StatusOr<Node> GetNode(const std::string& node);
  absl::StatusOr<PolicyList> Policies();

  /// An event of the scaler's own, with a `because` of so many bytes.
  void AddEvent(size_t bytes = 20);
  /// Of a live job: events of its past, one of each kind, linked.
  void AddHistory();
  /// Of a live job: a quarter of a second goes by.
  void Advance();
  /// From now on what people order is done at once, and its outcome is an event.
  void SettleAtOnce();
  /// From now on calls of Look() wait until Release().
  void Hold();
  void Release();
  /// Blocks until Events() is called.
  void AwaitAnotherEventCall();
  /// Blocks until so many calls of Look() have begun.
  void AwaitJobCalls(uint64_t count);
  /// From now on every question about the job is answered so; OK: as before.
  void Fail(absl::Status status);

 private:
  Event Add(Event event) MUSTER_REQUIRES(mutex_);
  Event Act(const std::string& action, const std::string& target, const std::string& reason)
      MUSTER_REQUIRES(mutex_);
  absl::StatusOr<Node*> Find(const std::string& node) MUSTER_REQUIRES(mutex_);
  static Node MakeNode(const std::string& name, const std::string& role, uint64_t pid);
  /// Refuses orders to a job that has ended.
  absl::Status CheckTakesOrders() MUSTER_REQUIRES(mutex_);
  void FillShards() MUSTER_REQUIRES(mutex_);
  void CountShards() MUSTER_REQUIRES(mutex_);
  void SetWorkers(uint32_t workers) MUSTER_REQUIRES(mutex_);
  /// What comes of an event some steps from now: the node, or the job for "job", gets the state.
  struct Becomes {
    NodeState node = NodeState::kRunning;
    JobState job = JobState::kRunning;
  };
  struct Pending {
    uint64_t step = 0;
    uint64_t cause_id = 0;
    std::string target;
    Becomes becomes;
    std::string because;
  };
  Event Later(Event cause, Becomes becomes, const std::string& because) MUSTER_REQUIRES(mutex_);
  void Settle(const Pending& pending) MUSTER_REQUIRES(mutex_);
  void EndJob(JobState state) MUSTER_REQUIRES(mutex_);
  void MoveShards() MUSTER_REQUIRES(mutex_);
  void MoveFigures() MUSTER_REQUIRES(mutex_);
  void AddEpochs() MUSTER_REQUIRES(mutex_);
  void AddGroup() MUSTER_REQUIRES(mutex_);
  void AddTopics() MUSTER_REQUIRES(mutex_);
  void MoveTopics() MUSTER_REQUIRES(mutex_);
  void AddSample(const std::string& node, const std::string& name, const std::string& unit,
                 double value) MUSTER_REQUIRES(mutex_);
  absl::StatusOr<Event> Take(const RestartNode& order, const std::string& reason);
  absl::StatusOr<Event> Take(const ResizeNode& order, const std::string& reason);
  absl::StatusOr<Event> Take(const ScaleWorkers& order, const std::string& reason);
  absl::StatusOr<Event> Take(const EndNode& order, const std::string& reason);
  absl::StatusOr<Event> Take(const SetPaused& order, const std::string& reason);
  absl::StatusOr<Event> Take(const DrainJob& order, const std::string& reason);
  absl::StatusOr<Event> Take(const CancelJob& order, const std::string& reason);
  absl::StatusOr<Event> Take(const RetryShards& order, const std::string& reason);
  absl::StatusOr<Event> Take(const auto&, const std::string&) {
    return absl::UnimplementedError("only policies order this");
  }

  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  uint64_t step_ MUSTER_GUARDED_BY(mutex_) = 0;
  /// Of each epoch the state of each shard.
  std::vector<std::vector<std::string_view>> states_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Pending> pending_ MUSTER_GUARDED_BY(mutex_);
  Samples samples_ MUSTER_GUARDED_BY(mutex_);
  Job job_ MUSTER_GUARDED_BY(mutex_);
  std::vector<DatasetStatus> datasets_ MUSTER_GUARDED_BY(mutex_);
  std::vector<ShardStatus> shards_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Node> nodes_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Event> events_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Policy> policies_ MUSTER_GUARDED_BY(mutex_);
  bool settle_ MUSTER_GUARDED_BY(mutex_) = false;
  bool held_ MUSTER_GUARDED_BY(mutex_) = false;
  uint64_t event_calls_ MUSTER_GUARDED_BY(mutex_) = 0;
  uint64_t job_calls_ MUSTER_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::scaler::rest::testing
