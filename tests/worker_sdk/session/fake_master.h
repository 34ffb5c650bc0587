#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "proto/control.grpc.pb.h"
#include "proto/messages/control.h"
#include "proto/messages/job_identity.h"

namespace muster::sdk {

/// A master for tests, on a real gRPC server: grants the shards it was given, keeps the rules for
/// dones, and does what a test plants. Thread-safe.
class FakeMaster final : public v1::WorkerService::Service {
 public:
  struct Done {
    LeaseToken token;
    uint32_t run = 0;
    ShardMetrics metrics;
  };

  explicit FakeMaster(uint32_t partitions);
  ~FakeMaster() override;

  const std::string& address() const { return address_; }
  /// Stops listening, as a killed master does; Restart listens there again under a new incarnation
  /// and without leases: they have to be re-asserted.
  void Kill();
  void Restart();
  /// The job that it is the master of from now on; calls of others are refused.
  void SetJob(const std::string& id);

  /// A shard over the whole of `path` (its records are lines).
  void AddShard(const std::string& path, uint32_t minibatch_size, DatasetMode mode);
  /// A shard that is a range of a topic, of dataset "topic".
  void AddRange(const std::string& topic, const OffsetRange& range, uint32_t minibatch_size);
  /// A shard that is record numbers, of dataset "range".
  void AddNumbers(uint64_t first, uint32_t records, uint32_t minibatch_size);
  /// ps-0 owns every partition and is at `address`, in a new incarnation: R and every E grow.
  void SetServer(const std::string& address, uint64_t incarnation);
  /// Ends the job once every shard is done; until then WAIT.
  void EndWhenDone();
  void Drain();
  /// While `hold`: no shard is granted.
  void HoldShards(bool hold);
  void ExpireLeases();
  void Reply(std::function<void(v1::HelloResponse*)> change);
  /// What it does wrong. Each is called with the mutex held, in every call of that kind.
  struct Faults {
    using Fault = std::function<grpc::Status()>;
    /// An error in place of the work, or (registered, exchanged) after it was done.
    Fault hello, registration, registered, exchange, exchanged;
    /// Changes an answer.
    std::function<void(WorkerExchangeReply*)> lie;
    /// The call is not answered before the worker gives it up.
    std::function<bool()> silence;
  };
  void Plant(Faults faults);
  /// Blocks until `condition` holds; it is called with the mutex held, after every exchange.
  void WaitFor(const std::function<bool()>& condition);

  // Read within WaitFor, or when the session is over.
  std::map<uint64_t, Done> done;  // by shard index
  std::vector<ReturnedLease> returned;
  std::map<uint64_t, Done> leases;  // by shard index
  std::vector<TableSpec> tables;
  int exchanges = 0;    // answered
  int strangers = 0;    // calls refused because they were of another job
  int given_up = 0;     // calls that the worker gave up, for they were not answered
  uint32_t wanted = 0;  // shards, in the newest call
  int reverified = 0, reasserted = 0, refused = 0;
  WorkerTimes times;
  std::vector<PeerTimes> peers;  // as last told
  std::vector<DatasetDelays> delays;
  std::vector<std::string> unwritten;  // each that differs from the one before, "" at first
  std::string refuse_hello;
  std::string job_id = "id-1";
  uint64_t restore_epoch() const { return map_.restore_epoch.value(); }

 private:
  grpc::Status Hello(grpc::ServerContext*, const v1::HelloRequest*, v1::HelloResponse*) override;
  grpc::Status RegisterTable(grpc::ServerContext*, const v1::RegisterTableRequest*,
                             v1::RegisterTableResponse*) override;
  grpc::Status Exchange(grpc::ServerContext*, const v1::WorkerExchangeRequest*,
                        v1::WorkerExchangeReply*) override;
  /// Waits until the worker gives the call up.
  void KeepSilent(const grpc::ServerContext& context) MUSTER_REQUIRES(mutex_);
  WorkerExchangeReply Serve(const WorkerExchangeRequest& request) MUSTER_REQUIRES(mutex_);
  DoneVerdict Judge(const DoneReport& report) MUSTER_REQUIRES(mutex_);
  void Listen();
  grpc::Status Check(const grpc::ServerContext& context, UnnamedJob unnamed)
      MUSTER_REQUIRES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::vector<ShardWork> shards_;
  std::function<void(v1::HelloResponse*)> change_hello_;
  Faults faults_;
  PartitionMap map_;
  uint64_t incarnation_ = 1, tokens_ = 0;
  bool end_ = false, drain_ = false, hold_ = false;
  int port_ = 0;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace muster::sdk
