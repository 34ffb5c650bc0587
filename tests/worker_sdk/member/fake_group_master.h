#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "master/group_core/group_core.h"
#include "proto/control.grpc.pb.h"
#include "tests/master/group_core/fake_data.h"

namespace muster::sdk {

/// A master of a group for tests, on a real gRPC server: the real GroupCore, over shards that are
/// files of lines and are nowhere but in memory. Thread-safe.
class FakeGroupMaster final : public v1::WorkerService::Service {
 public:
  /// One shard per mode, of `lines` lines in minibatches of `minibatch_size`, below `directory`.
  struct Options {
    std::string directory;
    std::vector<DatasetMode> shards;
    uint32_t lines = 8;
    uint32_t minibatch_size = 2;
    GroupOptions group;
    /// Other members have read so many records more than there are.
    uint64_t more_records = 0;
  };
  explicit FakeGroupMaster(const Options& options);
  ~FakeGroupMaster() override;

  const std::string& address() const { return address_; }
  /// Blocks until `condition` holds. It sees the group with the mutex held, after every call.
  void WaitFor(const std::function<bool(const GroupCore&, const muster::testing::FakeData&)>& done);
  /// Does something with the group.
  void With(const std::function<void(GroupCore&, muster::testing::FakeData&)>& act);
  /// What the members have said last, by worker.
  GroupExchangeRequest ReportOf(const std::string& worker);

 private:
  grpc::Status Hello(grpc::ServerContext*, const v1::HelloRequest*, v1::HelloResponse*) override;
  grpc::Status Exchange(grpc::ServerContext*, const v1::WorkerExchangeRequest*,
                        v1::WorkerExchangeReply*) override;
  grpc::Status ExchangeGroup(grpc::ServerContext*, const v1::GroupExchangeRequest*,
                             v1::GroupExchangeReply*) override;
  GroupExchangeReply Answer(const GroupExchangeRequest& request) MUSTER_REQUIRES(mutex_);
  void Tick() MUSTER_REQUIRES(mutex_);

  const std::string directory_;
  const uint64_t more_records_;
  const SystemClock clock_;
  std::vector<ShardWork> works_;
  Mutex mutex_;
  CondVar changed_;
  muster::testing::FakeData data_ MUSTER_GUARDED_BY(mutex_);
  std::unique_ptr<GroupCore> core_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, GroupExchangeRequest> reports_ MUSTER_GUARDED_BY(mutex_);
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace muster::sdk
