#pragma once

#include <grpcpp/grpcpp.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/token_file.h"
#include "base/version.h"
#include "master/service/master_server.h"
#include "proto/admin.grpc.pb.h"
#include "proto/control.grpc.pb.h"
#include "proto/messages/job_identity.h"
#include "proto/rpc/metadata.h"
#include "tests/master/sources/fake_source.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_journal.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {

MATCHER_P2(RpcIs, code, message, "") {
  *result_listener << arg.error_code() << ": " << arg.error_message();
  return arg.error_code() == code &&
         ::testing::ExplainMatchResult(message, arg.error_message(), result_listener);
}

/// A master of a job of two shards and two partitions, and callers of its services.
class MasterServerTest : public ::testing::Test {
 protected:
  MasterServerTest() {
    options_.job.name = "flights";
    options_.job.seed = 7;
    options_.job.partitions = 2;
    options_.job.snapshot_directory = folder_.path();
    DatasetPlan plan{"train", DatasetMode::kTrain, 1, 2, 20, 5, nullptr};
    plan.size_of = [](EpochIndex, ShardIndex) { return ShardSize{10, 2}; };
    options_.core.datasets = {plan};
    options_.core.partitions = 2;
    options_.core.run_id = "run-1";
    options_.core.snapshot_interval = std::chrono::milliseconds(0);
    options_.listen_address = "127.0.0.1:0";
    options_.token_file = folder_.File("token");
    DatasetSpec dataset{.name = "train", .mode = DatasetMode::kTrain, .source = {}};
    dataset.minibatch_size = 5;
    dataset.minibatches_per_shard = 2;
    options_.job.datasets = {dataset};
    std::vector<std::unique_ptr<DatasetSource>> sources;
    sources.push_back(std::make_unique<FakeSource>(std::make_shared<const ShardLayout>(
        std::vector<ShardLayout::Source>{{.records = 20}},
        ShardLayout::Options{.minibatch_size = 5, .minibatches_per_shard = 2})));
    sources_.emplace(options_.job, std::move(sources));
    options_.sources = &*sources_;
  }
  void Start() {
    MUSTER_ASSERT_OK_AND_ASSIGN(server_, MasterServer::Start(options_, used_journal_, &clock_));
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(server_->port()),
                                   grpc::InsecureChannelCredentials());
    worker_ = v1::WorkerService::NewStub(channel_);
    servers_ = v1::ServerService::NewStub(channel_);
    admin_ = v1::AdminService::NewStub(channel_);
  }
  template <typename Stub, typename Base, typename Request, typename Reply>
  grpc::Status Call(Stub* stub,
                    grpc::Status (Base::*method)(grpc::ClientContext*, const Request&, Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    if (!job_.id.empty()) context.AddMetadata(kJobIdMetadata, job_.id);
    if (!job_.name.empty()) context.AddMetadata(kJobNameMetadata, job_.name);
    context.AddMetadata(kTokenMetadata,
                        token_.has_value() ? *token_ : LoadToken(options_.token_file).value());
    context.set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN)));
    return (stub->*method)(&context, request, reply);
  }
  using Worker = v1::WorkerService::StubInterface;
  using Servers = v1::ServerService::StubInterface;
  using Admin = v1::AdminService::StubInterface;

  grpc::Status Hello(std::string_view version, const std::string& name = "worker-0") {
    v1::HelloRequest request;
    request.set_worker(name);
    request.set_incarnation(9);
    request.set_sdk_version(std::string(version));
    return Call(worker_.get(), &Worker::Hello, request, &hello_);
  }
  grpc::Status Exchange(v1::WorkerExchangeRequest request, v1::WorkerExchangeReply* reply) {
    if (request.worker().empty()) request.set_worker("worker-0");
    request.set_incarnation(9);
    request.set_sequence(++sequence_);
    return Call(worker_.get(), &Worker::Exchange, request, reply);
  }
  /// ps-0 registers and calls once; returns the answer.
  v1::ServerExchangeReply RegisterServer(const std::string& address = "unix:/x") {
    v1::RegisterServerRequest registration;
    registration.set_name("ps-0");
    registration.set_nonce(5);
    registration.set_version(kVersion);
    registration.add_lanes()->add_addresses(address);
    v1::RegisterServerReply registered;
    EXPECT_TRUE(Call(servers_.get(), &Servers::Register, registration, &registered).ok());
    EXPECT_EQ(registered.snapshot_directory(), folder_.path());
    EXPECT_EQ(registered.heartbeat_interval_ms(),
              static_cast<uint64_t>(options_.job.servers.heartbeat_interval.count()));
    beat_.set_incarnation(registered.incarnation());
    return Beat();
  }
  v1::ServerExchangeReply Beat() {
    beat_.set_sequence(beat_.sequence() + 1);
    v1::ServerExchangeReply commands;
    EXPECT_TRUE(Call(servers_.get(), &Servers::Exchange, beat_, &commands).ok());
    return commands;
  }
  /// Obeys `first`, then writes every snapshot that is asked for.
  void SnapshotEverything(const v1::ServerExchangeReply& first) {
    for (const v1::OwnCommand& own : first.owns()) {
      v1::OwnedPartition* owned = beat_.add_owned();
      owned->set_partition(own.partition());
      owned->set_epoch(own.epoch());
    }
    const v1::ServerExchangeReply commands = Beat();
    ASSERT_EQ(commands.snapshots_size(), 2);
    for (const v1::SnapshotCommand& command : commands.snapshots()) {
      v1::SnapshotReport* snapshot = beat_.add_snapshots();
      snapshot->set_partition(command.partition());
      snapshot->set_epoch(command.epoch());
      snapshot->mutable_manifest()->set_number(command.number());
      snapshot->mutable_manifest()->set_cut(command.cut());
    }
    Beat();
  }
  v1::JobStatus Status() {
    v1::JobStatus status;
    EXPECT_TRUE(Call(admin_.get(), &Admin::GetStatus, v1::GetStatusRequest(), &status).ok());
    return status;
  }

  testing::TempDir folder_;
  testing::FakeClock clock_;
  JobIdentity job_{"memory", "flights"};  // of the caller; "memory": MemoryJournal's
  std::optional<std::string> token_;      // of the caller; else the job's
  testing::MemoryJournal journal_;
  Journal* used_journal_ = &journal_;
  std::optional<SourceCatalog> sources_;
  MasterServer::Options options_;
  std::unique_ptr<MasterServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorkerService::Stub> worker_;
  std::unique_ptr<v1::ServerService::Stub> servers_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  v1::HelloResponse hello_;
  v1::ServerExchangeRequest beat_;
  uint64_t sequence_ = 0;
};

}  // namespace muster
