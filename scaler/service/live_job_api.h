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

/// Holds the newest picture of the job. Thread-safe.
class PictureBoard {
 public:
  void Hang(Picture picture);
  /// It is never null.
  std::shared_ptr<const Picture> Look() const;

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const Picture> picture_ MUSTER_GUARDED_BY(mutex_) =
      std::make_shared<const Picture>();
};

/// What the deciding thread does for other threads. All functions are called on the deciding
/// thread.
class OrderTaker {
 public:
  virtual ~OrderTaker() = default;
  /// Takes an order and records its event. If the master carries the order out, the caller sends it
  /// to the master afterwards.
  virtual absl::StatusOr<rest::Event> Take(const Wish& wish) = 0;
  /// The order of this event could not be carried out.
  virtual void FailOrder(uint64_t event_id, const std::string& why) = 0;
  virtual rest::Samples GiveSamples(const rest::SampleQuery& query) = 0;
};

/// The running job, for the REST interface. It answers questions about the state of job and nodes
/// from the board, which costs nothing. It asks the master about shards and partitions. Events come
/// from the event log, and logs from their files. The deciding thread carries out orders.
class LiveJobApi final : public rest::JobApi {
 public:
  struct Options {
    /// Has the logs of nodes. Must outlive the LiveJobApi.
    const NodeHost* host = nullptr;
    /// How long it may take until the deciding thread begins with an order.
    std::chrono::milliseconds order_deadline{3'000};
  };
  /// All pointers must outlive it. Calls of `master` must fail at once, or within a few seconds, if
  /// no master is there.
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
  /// Limits how many calls of one kind run at a time. If the callee is away, each call takes
  /// seconds.
  class Gate {
   public:
    explicit Gate(int max) : max_(max) {}
    /// Waits a moment if too many calls are inside. Returns false if none has ended by then.
    bool Enter();
    void Leave();

   private:
    const int max_;
    Mutex mutex_;
    CondVar left_;
    int inside_ MUSTER_GUARDED_BY(mutex_) = 0;
  };
  /// Asks the master, unless the master is known to be away.
  template <typename Answer>
  absl::StatusOr<Answer> AskMaster(const std::function<absl::StatusOr<Answer>()>& ask);

  absl::Status AskMasterFor(const Wish& wish);
  /// True for a drain of a node that `muster join` runs. Only the master reaches such a node.
  bool DrainsJoined(const Order& order) const;
  /// Fills in the ids of all FAILED shards if a person named none. Errors: InvalidArgument for a
  /// malformed id.
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
