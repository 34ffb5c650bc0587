#include "tests/worker_sdk/member/fake_group_master.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "proto/fields/generated.h"
#include "proto/rpc/grpc_status.h"
#include "tests/worker_sdk/readers/work_on_file.h"

namespace muster::sdk {
namespace {

constexpr std::chrono::milliseconds kGroupTick{5};

ShardWork WorkOver(const std::string& path, DatasetMode mode,
                   const FakeGroupMaster::Options& options) {
  std::ofstream file(path);
  for (uint32_t i = 0; i < options.lines; ++i) file << i + 1 << "\n";
  file.close();
  ShardWork work = testing::WorkOnFile(path, options.minibatch_size, mode);
  work.dataset_name = "data";
  return work;
}

}  // namespace

FakeGroupMaster::FakeGroupMaster(const Options& options)
    : directory_(options.directory),
      more_records_(options.more_records),
      data_(std::vector<uint32_t>(
          options.shards.size(),
          (options.lines + options.minibatch_size - 1) / options.minibatch_size)) {
  for (size_t i = 0; i < options.shards.size(); ++i) {
    works_.push_back(
        WorkOver(directory_ + "/shard-" + std::to_string(i), options.shards[i], options));
  }
  {
    MutexLock lock(&mutex_);
    data_.incarnation = MasterIncarnation(1);
    core_ = std::make_unique<GroupCore>(options.group, MasterIncarnation(1), GroupRecords(), &data_,
                                        clock_.Now());
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  MUSTER_CHECK(server_ != nullptr);
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeGroupMaster::~FakeGroupMaster() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    changed_.SignalAll();
  }
  server_->Shutdown(std::chrono::system_clock::time_point());
}

void FakeGroupMaster::WaitFor(
    const std::function<bool(const GroupCore&, const muster::testing::FakeData&)>& done) {
  MutexLock lock(&mutex_);
  while (!done(*core_, data_)) {
    changed_.WaitFor(&mutex_, kGroupTick);
    Tick();
  }
}

void FakeGroupMaster::With(const std::function<void(GroupCore&, muster::testing::FakeData&)>& act) {
  MutexLock lock(&mutex_);
  act(*core_, data_);
  changed_.SignalAll();
}

GroupExchangeRequest FakeGroupMaster::ReportOf(const std::string& worker) {
  MutexLock lock(&mutex_);
  return reports_[worker];
}

void FakeGroupMaster::Tick() {
  core_->Tick(clock_.Now());
  std::vector<GroupMutation> mutations;
  core_->Collect(&mutations);
}

grpc::Status FakeGroupMaster::Hello(grpc::ServerContext*, const v1::HelloRequest*,
                                    v1::HelloResponse* response) {
  response->set_job("job");
  response->set_job_id("id-1");
  response->set_seed(7);
  response->set_partition_count(1);
  response->set_heartbeat_interval_ms(20);
  response->set_unacknowledged_minibatches_max(2);
  response->set_wire_encoding("float32");
  response->set_lease_duration_ms(10'000);
  response->set_group(true);
  response->set_group_directory(directory_);
  return grpc::Status::OK;
}

grpc::Status FakeGroupMaster::Exchange(grpc::ServerContext*, const v1::WorkerExchangeRequest*,
                                       v1::WorkerExchangeReply* reply) {
  MutexLock lock(&mutex_);
  WorkerExchangeReply answer;
  answer.master_incarnation = MasterIncarnation(1);
  if (data_.over) answer.directive = JobDirective::kEnd;
  ToProto(answer, reply);
  return grpc::Status::OK;
}

GroupExchangeReply FakeGroupMaster::Answer(const GroupExchangeRequest& request) {
  GroupExchangeReply reply = core_->ReplyFor(request.worker, request.incarnation);
  if (data_.over) reply.directive = JobDirective::kEnd;
  reply.succeeded = data_.over;
  reply.step_records += more_records_;
  if (reply.work.has_value()) reply.work->work = works_[reply.work->shard.index.value()];
  if (const std::optional<ShardId> ahead = core_->ahead()) {
    reply.ahead = works_[ahead->index.value()];
  }
  return reply;
}

grpc::Status FakeGroupMaster::ExchangeGroup(grpc::ServerContext*,
                                            const v1::GroupExchangeRequest* request,
                                            v1::GroupExchangeReply* reply) {
  const absl::StatusOr<GroupExchangeRequest> read = FromProto<GroupExchangeRequest>(*request);
  MUSTER_CHECK_MSG(read.ok(), read.status().ToString());
  MutexLock lock(&mutex_);
  reports_[read->worker] = *read;
  const absl::Status heard = core_->Exchange(*read, clock_.Now());
  if (!heard.ok()) return ToGrpcStatus(heard);
  changed_.SignalAll();
  const TimePoint until = clock_.Now() + std::chrono::milliseconds(20);
  const auto news = [&]() MUSTER_NO_THREAD_SAFETY_ANALYSIS {
    return read->master_incarnation != MasterIncarnation(1) || data_.over ||
           core_->NewsFor(read->worker, read->incarnation) > read->news ||
           core_->HasNewerCall(read->worker, read->incarnation, read->sequence);
  };
  while (!closed_ && !news() && clock_.Now() < until) {
    changed_.WaitFor(&mutex_, kGroupTick);
    Tick();
  }
  ToProto(Answer(*read), reply);
  return grpc::Status::OK;
}

}  // namespace muster::sdk
