#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "proto/control.grpc.pb.h"
#include "proto/fields/generated.h"
#include "proto/messages/job_identity.h"
#include "proto/rpc/grpc_status.h"
#include "proto/rpc/metadata.h"

namespace muster::ps::testing {

/// A master in this process, over real gRPC, that answers what the test wants. Thread-safe.
class FakeMaster final : public v1::ServerService::Service {
 public:
  using Script = std::function<ServerExchangeReply(const ServerExchangeRequest&)>;

  /// Listens on `port`; 0: a free one.
  explicit FakeMaster(int port = 0, std::string job_id = "id-1") : job_id_(std::move(job_id)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeMaster() override { server_->Shutdown(); }

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// The answer to exchanges from now on.
  void SetScript(Script script) {
    MutexLock lock(&mutex_);
    script_ = std::move(script);
  }
  void RefuseRegistration(grpc::Status status) {
    MutexLock lock(&mutex_);
    refusal_ = std::move(status);
  }

  /// The next registrations are recorded, and answered with these, one each.
  void FailRegistrations(std::vector<grpc::Status> failures) {
    MutexLock lock(&mutex_);
    failed_registrations_ = {failures.begin(), failures.end()};
  }
  std::vector<RegisterServerRequest> registrations() {
    MutexLock lock(&mutex_);
    return registrations_;
  }

  /// The next exchange is recorded, and answered with `status`.
  void FailExchange(grpc::Status status) {
    MutexLock lock(&mutex_);
    failure_ = std::move(status);
  }

  /// Waits for an exchange that satisfies `condition` and comes after this call; fails the wait
  /// after half a minute.
  bool WaitFor(const std::function<bool(const ServerExchangeRequest&)>& condition) {
    MutexLock lock(&mutex_);
    size_t seen = requests_.size();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < end) {
      for (; seen < requests_.size(); ++seen) {
        if (condition(requests_[seen])) return true;
      }
      changed_.WaitFor(&mutex_, std::chrono::seconds(1));
    }
    return false;
  }
  /// Waits until a call of another job has been refused.
  bool WaitForStranger() {
    MutexLock lock(&mutex_);
    while (!stranger_) {
      if (!changed_.WaitFor(&mutex_, std::chrono::seconds(30))) return false;
    }
    return true;
  }
  /// The registration, when it has come.
  RegisterServerRequest WaitForRegistration() {
    MutexLock lock(&mutex_);
    while (registrations_.empty()) {
      if (!changed_.WaitFor(&mutex_, std::chrono::seconds(30))) return {};
    }
    return registrations_.back();
  }

  grpc::Status Register(grpc::ServerContext* context, const v1::RegisterServerRequest* request,
                        v1::RegisterServerReply* reply) override {
    MutexLock lock(&mutex_);
    if (grpc::Status status = Check(*context, UnnamedJob::kAccept); !status.ok()) return status;
    if (!refusal_.ok()) return refusal_;
    registrations_.push_back(FromProto<RegisterServerRequest>(*request).value());
    changed_.SignalAll();
    if (!failed_registrations_.empty()) {
      const grpc::Status failure = failed_registrations_.front();
      failed_registrations_.pop_front();
      return failure;
    }
    reply->set_master_incarnation(1);
    reply->set_id(0);
    reply->set_incarnation(5);
    reply->set_job("job");
    reply->set_job_id(job_id_);
    reply->set_seed(1);
    reply->set_partition_count(4);
    reply->set_snapshot_directory("unused");
    reply->set_heartbeat_interval_ms(10);
    return grpc::Status::OK;
  }

  grpc::Status Exchange(grpc::ServerContext* context, const v1::ServerExchangeRequest* request,
                        v1::ServerExchangeReply* reply) override {
    auto decoded = FromProto<ServerExchangeRequest>(*request);
    if (!decoded.ok()) return {grpc::StatusCode::INVALID_ARGUMENT, "undecodable"};
    MutexLock lock(&mutex_);
    if (grpc::Status status = Check(*context, UnnamedJob::kRefuse); !status.ok()) return status;
    requests_.push_back(*decoded);
    changed_.SignalAll();
    if (!failure_.ok()) return std::exchange(failure_, grpc::Status::OK);
    ServerExchangeReply answer;
    answer.master_incarnation = MasterIncarnation(1);
    if (script_) answer = script_(*decoded);
    ToProto(answer, reply);
    return grpc::Status::OK;
  }

 private:
  grpc::Status Check(const grpc::ServerContext& context, UnnamedJob unnamed)
      MUSTER_REQUIRES(mutex_) {
    const absl::Status status = CheckJobIdentity(
        {"this master", "the server"}, {job_id_, "job"},
        {MetadataOf(context, kJobIdMetadata), MetadataOf(context, kJobNameMetadata)}, unnamed);
    stranger_ = stranger_ || !status.ok();
    changed_.SignalAll();
    return ToGrpcStatus(status);
  }

  const std::string job_id_;
  int port_ = 0;
  Mutex mutex_;
  CondVar changed_;
  Script script_ MUSTER_GUARDED_BY(mutex_);
  bool stranger_ MUSTER_GUARDED_BY(mutex_) = false;
  grpc::Status refusal_ MUSTER_GUARDED_BY(mutex_);
  std::deque<grpc::Status> failed_registrations_ MUSTER_GUARDED_BY(mutex_);
  grpc::Status failure_ MUSTER_GUARDED_BY(mutex_);
  std::vector<RegisterServerRequest> registrations_ MUSTER_GUARDED_BY(mutex_);
  std::vector<ServerExchangeRequest> requests_ MUSTER_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace muster::ps::testing
