#include "tests/worker_sdk/session/fake_master.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "base/file.h"
#include "base/version.h"
#include "base/words/parts.h"
#include "proto/fields/generated.h"
#include "proto/rpc/grpc_status.h"
#include "proto/rpc/metadata.h"
#include "tests/worker_sdk/readers/work_on_file.h"

namespace muster::sdk {

FakeMaster::FakeMaster(uint32_t partitions) {
  map_.version = MapVersion(1);
  map_.restore_epoch = RestoreEpoch(1);
  map_.partitions.resize(partitions);
  Listen();
}

FakeMaster::~FakeMaster() {
  Kill();
}

void FakeMaster::Listen() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port_), grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  MUSTER_CHECK(server_ != nullptr);
  address_ = "127.0.0.1:" + std::to_string(port_);
}

void FakeMaster::Kill() {
  if (server_) server_->Shutdown(std::chrono::system_clock::time_point());
  server_.reset();
}

void FakeMaster::Restart() {
  {
    MutexLock lock(&mutex_);
    ++incarnation_;
    leases.clear();
  }
  Listen();
}

void FakeMaster::SetJob(const std::string& id) {
  MutexLock lock(&mutex_);
  job_id = id;
}

grpc::Status FakeMaster::Check(const grpc::ServerContext& context, UnnamedJob unnamed) {
  const absl::Status status = CheckJobIdentity(
      {"this master", "the worker"}, {job_id, "job"},
      {MetadataOf(context, kJobIdMetadata), MetadataOf(context, kJobNameMetadata)}, unnamed);
  if (!status.ok()) ++strangers;
  changed_.SignalAll();
  return ToGrpcStatus(status);
}

void FakeMaster::AddShard(const std::string& path, uint32_t minibatch_size, DatasetMode mode) {
  ShardWork work = testing::WorkOnFile(path, minibatch_size, mode);
  work.dataset_name = mode == DatasetMode::kTrain ? "train" : "test";
  MutexLock lock(&mutex_);
  work.first_step = shards_.size() * 1000;
  shards_.push_back(work);
}

void FakeMaster::AddRange(const std::string& topic, const OffsetRange& range,
                          uint32_t minibatch_size) {
  ShardWork work;
  work.dataset_name = "topic";
  work.record_count = static_cast<uint32_t>(range.offsets());
  work.minibatch_size = minibatch_size;
  work.minibatch_count = static_cast<uint32_t>(DivideUp(work.record_count, minibatch_size));
  work.stream = {topic, {range}};
  MutexLock lock(&mutex_);
  shards_.push_back(work);
}

void FakeMaster::AddNumbers(uint64_t first, uint32_t records, uint32_t minibatch_size) {
  ShardWork work;
  work.dataset_name = "range";
  work.record_count = records;
  work.minibatch_size = minibatch_size;
  work.minibatch_count = static_cast<uint32_t>(DivideUp(records, minibatch_size));
  work.runs = {{.first_record = first, .record_count = records}};
  MutexLock lock(&mutex_);
  shards_.push_back(work);
}

void FakeMaster::SetServer(const std::string& address, uint64_t incarnation) {
  MutexLock lock(&mutex_);
  map_.version = map_.version.Next();
  map_.restore_epoch = map_.restore_epoch.Next();
  map_.servers = {{ServerId(0), ServerIncarnation(incarnation), "ps-0", {{address}}}};
  for (PartitionEntry& entry : map_.partitions) {
    entry.owner_incarnation = ServerIncarnation(incarnation);
    entry.epoch = entry.epoch.Next();
    entry.restored_at = map_.restore_epoch;
  }
}

void FakeMaster::EndWhenDone() {
  MutexLock lock(&mutex_);
  end_ = true;
}
void FakeMaster::Drain() {
  MutexLock lock(&mutex_);
  drain_ = true;
}
void FakeMaster::HoldShards(bool hold) {
  MutexLock lock(&mutex_);
  hold_ = hold;
}
void FakeMaster::ExpireLeases() {
  MutexLock lock(&mutex_);
  leases.clear();
}
void FakeMaster::Reply(std::function<void(v1::HelloResponse*)> change) {
  MutexLock lock(&mutex_);
  change_hello_ = std::move(change);
}
void FakeMaster::Plant(Faults faults) {
  MutexLock lock(&mutex_);
  faults_ = std::move(faults);
}
void FakeMaster::WaitFor(const std::function<bool()>& condition) {
  MutexLock lock(&mutex_);
  while (!condition()) changed_.Wait(&mutex_);
}

grpc::Status FakeMaster::Hello(grpc::ServerContext* context, const v1::HelloRequest* request,
                               v1::HelloResponse* response) {
  MutexLock lock(&mutex_);
  if (grpc::Status status = Check(*context, UnnamedJob::kAccept); !status.ok()) return status;
  if (faults_.hello) {
    if (grpc::Status status = faults_.hello(); !status.ok()) return status;
  }
  if (!refuse_hello.empty()) return {grpc::FAILED_PRECONDITION, refuse_hello};
  MUSTER_CHECK(request->sdk_version() == kCompatibleVersion);
  response->set_job("job");
  response->set_job_id(job_id);
  response->set_seed(7);
  response->set_partition_count(static_cast<uint32_t>(map_.partitions.size()));
  response->set_heartbeat_interval_ms(20);
  response->set_unacknowledged_minibatches_max(2);
  response->set_prefetch_minibatches(2);
  response->set_shards_ahead(1);
  response->set_wire_encoding("float32");
  response->set_lease_duration_ms(10'000);
  if (change_hello_) change_hello_(response);
  return grpc::Status::OK;
}

grpc::Status FakeMaster::RegisterTable(grpc::ServerContext* context,
                                       const v1::RegisterTableRequest* request,
                                       v1::RegisterTableResponse* response) {
  absl::StatusOr<TableSpec> spec = FromProto<TableSpec>(request->table());
  MUSTER_CHECK_MSG(spec.ok(), spec.status().ToString());
  MutexLock lock(&mutex_);
  if (grpc::Status status = Check(*context, UnnamedJob::kRefuse); !status.ok()) return status;
  if (faults_.registration) {
    if (grpc::Status status = faults_.registration(); !status.ok()) return status;
  }
  for (const TableSpec& known : tables) {
    if (known.name != spec->name) continue;
    spec->id = known.id;
    if (spec->warm_start_hash.empty()) spec->warm_start_hash = known.warm_start_hash;
    if (!(known == *spec)) {
      return {grpc::ALREADY_EXISTS,
              "table \"" + known.name + "\": " + ToString(known) + " against " + ToString(*spec)};
    }
    response->set_id(known.id.value());
    return grpc::Status::OK;
  }
  if (!spec->warm_start_directory.empty() && spec->warm_start_hash.empty()) {
    return {grpc::NOT_FOUND, "the hash of the export is wanted"};
  }
  spec->id = TableId(static_cast<uint32_t>(tables.size() + 1));
  tables.push_back(*spec);
  response->set_id(spec->id.value());
  return faults_.registered ? faults_.registered() : grpc::Status::OK;
}

grpc::Status FakeMaster::Exchange(grpc::ServerContext* context,
                                  const v1::WorkerExchangeRequest* request,
                                  v1::WorkerExchangeReply* reply) {
  absl::StatusOr<WorkerExchangeRequest> read = FromProto<WorkerExchangeRequest>(*request);
  MUSTER_CHECK_MSG(read.ok(), read.status().ToString());
  MutexLock lock(&mutex_);
  if (grpc::Status status = Check(*context, UnnamedJob::kRefuse); !status.ok()) return status;
  if (faults_.silence && faults_.silence()) {
    KeepSilent(*context);
    return grpc::Status::CANCELLED;
  }
  if (faults_.exchange) {
    if (grpc::Status status = faults_.exchange(); !status.ok()) return status;
  }
  WorkerExchangeReply answer = Serve(*read);
  if (faults_.lie) faults_.lie(&answer);
  ToProto(answer, reply);
  ++exchanges;
  changed_.SignalAll();
  return faults_.exchanged ? faults_.exchanged() : grpc::Status::OK;
}

void FakeMaster::KeepSilent(const grpc::ServerContext& context) {
  while (!context.IsCancelled()) changed_.WaitFor(&mutex_, std::chrono::milliseconds(1));
  ++given_up;
  changed_.SignalAll();
}

WorkerExchangeReply FakeMaster::Serve(const WorkerExchangeRequest& request) {
  WorkerExchangeReply reply;
  reply.master_incarnation = MasterIncarnation(incarnation_);
  times = request.times;
  wanted = request.want;
  if (!request.peers.empty()) peers = request.peers;
  delays = request.delays;
  if (request.unwritten != (unwritten.empty() ? "" : unwritten.back())) {
    unwritten.push_back(request.unwritten);
  }
  for (const HeldLease& held : request.held) {
    uint64_t s = held.shard.index.value();
    if (leases.contains(s) && leases[s].token == held.token) continue;
    if (done.contains(s) && done[s].token == held.token) continue;
    if (!leases.contains(s) && !done.contains(s) &&
        held.token.incarnation().value() < incarnation_) {
      leases[s].token = held.token;
      ++reasserted;
    } else {
      reply.lost.push_back(held.token);
    }
  }
  for (const DoneReport& report : request.done) reply.verdicts.push_back(Judge(report));
  for (const ReturnedLease& lease : request.returned) {
    returned.push_back(lease);
    leases.erase(lease.shard.index.value());
  }
  for (uint64_t s = 0; s < shards_.size() && reply.grants.size() < request.want; ++s) {
    if (drain_ || hold_ || done.contains(s) || leases.contains(s)) continue;
    bool failed = std::ranges::any_of(returned, [&](const ReturnedLease& lease) {
      return lease.shard.index.value() == s && lease.failed;
    });
    if (failed) continue;
    leases[s].token = LeaseToken(MasterIncarnation(incarnation_), ++tokens_);
    reply.grants.push_back({{DatasetId(0), EpochIndex(0), ShardIndex(s)},
                            leases[s].token,
                            map_.restore_epoch,
                            shards_[s]});
  }
  if (!map_.servers.empty() && request.map_version < map_.version) reply.map = map_;
  if (drain_) reply.directive = JobDirective::kDrain;
  if (end_ && done.size() == shards_.size()) reply.directive = JobDirective::kEnd;
  return reply;
}

DoneVerdict FakeMaster::Judge(const DoneReport& report) {
  uint64_t s = report.shard.index.value();
  DoneVerdict verdict{report.shard, report.token, report.run, DoneCode::kAccepted,
                      map_.restore_epoch};
  if (done.contains(s) && done[s].token == report.token) return verdict;
  if (!leases.contains(s) || leases[s].token != report.token) {
    verdict.code = DoneCode::kRefused;
    ++refused;
  } else if (report.restore_epoch < map_.restore_epoch && shards_[s].mode == DatasetMode::kTrain) {
    verdict.code = DoneCode::kReverify;
    ++reverified;
  } else {
    done[s] = {report.token, report.run.value(), report.metrics};
    leases.erase(s);
  }
  return verdict;
}

}  // namespace muster::sdk
