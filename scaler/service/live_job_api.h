#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "admin/admin_client.h"
#include "base/mutex.h"
#include "host/node_host.h"
#include "scaler/decision/log/event_log.h"
#include "scaler/rest/job_api.h"
#include "scaler/service/call_queue.h"
#include "scaler/service/picture.h"

namespace muster::scaler {

/// The newest picture of the job. Thread-safe.
class PictureBoard {
 public:
  void Hang(Picture picture);
  /// Never null.
  std::shared_ptr<const Picture> Look() const;

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const Picture> picture_ MUSTER_GUARDED_BY(mutex_) =
      std::make_shared<const Picture>();
};

/// What the deciding thread does for others; each is called on that thread.
class OrderTaker {
 public:
  virtual ~OrderTaker() = default;
  /// Orders that the master carries out are sent after the event is recorded.
  virtual absl::StatusOr<rest::Event> Take(const Wish& wish) = 0;
  /// The order of the event could not be carried out.
  virtual void FailOrder(uint64_t event_id, const std::string& why) = 0;
  virtual rest::Samples GiveSamples(const rest::SampleQuery& query) = 0;
};

/// The job that runs, for the REST interface. Reads of the job's and the nodes' state are answered
/// from the board, which costs nothing; those of shards and partitions by the master; those of
/// events and logs from the log and the files. Orders are carried out by the deciding thread.
class LiveJobApi final : public rest::JobApi {
 public:
  struct Options {
    /// Has the logs of nodes; outlives it.
    const NodeHost* host = nullptr;
    /// How long the deciding thread may take to begin with an order.
    std::chrono::milliseconds order_deadline{3'000};
  };
  /// All must outlive it. `master` fails at once, or within a few seconds, if no master is there.
  LiveJobApi(Options options, const PictureBoard* board, const EventLog* events,
             AdminClient* master, CallQueue* calls, OrderTaker* orders);

  absl::StatusOr<std::shared_ptr<const rest::Picture>> Look() override;
  absl::StatusOr<ShardPage> Shards(const rest::ShardQuery& query) override;
  absl::StatusOr<ShardMap> MapOfShards(uint32_t dataset, uint32_t epoch) override;
  absl::StatusOr<rest::LogChunk> Logs(const std::string& node,
                                      const rest::LogQuery& query) override;
  absl::StatusOr<rest::PartitionPage> Partitions(uint64_t offset, uint32_t limit) override;
  absl::StatusOr<rest::EventList> Events(uint64_t after, uint32_t limit) override;
  absl::StatusOr<rest::Explanation> Explain(uint64_t event_id) override;
  absl::StatusOr<rest::Samples> GetSamples(const rest::SampleQuery& query) override;

  absl::StatusOr<rest::Event> Give(const Wish& wish) override;

 private:
  /// Bounds calls of one kind at a time: whom they ask may be away, and then each takes seconds.
  class Gate {
   public:
    explicit Gate(int max) : max_(max) {}
    /// False when too many are inside and none has come out for a moment.
    bool Enter();
    void Leave();

   private:
    const int max_;
    Mutex mutex_;
    CondVar left_;
    int inside_ MUSTER_GUARDED_BY(mutex_) = 0;
  };
  /// Asks the master, unless it is known to be away.
  template <typename Answer>
  absl::StatusOr<Answer> AskMaster(const std::function<absl::StatusOr<Answer>()>& ask);

  absl::Status AskMasterFor(const Wish& wish);
  /// Only the master reaches a node that `muster join` runs.
  bool DrainsJoined(const Order& order) const;
  /// The ids of all FAILED shards when a person named none. InvalidArgument: one is no id.
  absl::Status Complete(RetryShards* retry);
  absl::StatusOr<std::vector<std::string>> FailedShards();
  absl::Status HasNode(const std::string& node);

  const Options options_;
  const PictureBoard* const board_;
  const EventLog* const events_;
  AdminClient* const master_;
  CallQueue* const calls_;
  OrderTaker* const orders_;
  Gate at_master_;
  Gate at_logs_;
};

}  // namespace muster::scaler
