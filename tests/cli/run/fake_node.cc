#include <fmt/core.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>

#include "base/mutex.h"
#include "proto/admin.grpc.pb.h"
#include "proto/fields/generated.h"
#include "proto/status/job_status.h"
#include "proto/status/shard_status.h"

/// `fake_node master --job J --base-directory DIR --listen ADDRESS ...` and `fake_node ps ...`: the
/// nodes that `muster run` starts, without training. The master is steered by files in DIR: it
/// succeeds when `succeed` exists, refuses to start when `refuse` does, calls ps-0 lost while
/// `lost` does, and appends what it is told of nodes to `reports`, which it knows when it is
/// started again. A server refuses to start while `refuse-ps` exists.
namespace muster {
namespace {

class FakeMaster final : public v1::AdminService::Service {
 public:
  explicit FakeMaster(std::string folder) : folder_(std::move(folder)) { ReadReports(); }

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::JobStatus* response) override {
    MutexLock lock(&mutex_);
    if (state_ == JobState::kRunning && Exists("succeed")) state_ = JobState::kSucceeded;
    const bool done = state_ == JobState::kSucceeded;
    JobStatus status;
    status.name = "demo";
    status.state = state_;
    status.reason = reason_;
    status.events_newest = 1;
    status.counters.redelivered_minibatches = 3;
    status.progress = {.records_expected = 100,
                       .records_done = done ? 100u : 40u,
                       .records_committed = done ? 100u : 20u};
    status.datasets = {{.name = "train",
                        .epochs_total = 1,
                        .epochs = {{.records_expected = status.progress.records_expected,
                                    .records_done = status.progress.records_done,
                                    .records_committed = status.progress.records_committed}}}};
    for (const auto& [name, node] : nodes_) {
      status.nodes.push_back(node);
      if (name == "ps-0" && Exists("lost")) status.nodes.back().state = NodeState::kLost;
    }
    ToProto(status, response);
    return grpc::Status::OK;
  }

  grpc::Status ListEvents(grpc::ServerContext*, const v1::ListEventsRequest* request,
                          v1::ListEventsResponse* response) override {
    if (request->after() > 0) return grpc::Status::OK;
    ToProto(MasterEvents{{{.sequence = 1,
                           .wall_us = 1'700'000'000'000'000,
                           .kind = "job-started",
                           .text = "with 16 shards"}}},
            response);
    return grpc::Status::OK;
  }

  grpc::Status ListShards(grpc::ServerContext*, const v1::ListShardsRequest*,
                          v1::ListShardsResponse* response) override {
    ToProto(ShardPage{.total = 1,
                      .shards = {{.id = "0/1/17",
                                  .dataset = "train",
                                  .epoch = 1,
                                  .index = 17,
                                  .state = "failed",
                                  .reasons = {"worker-0: SIGSEGV"}}}},
            response);
    return grpc::Status::OK;
  }

  grpc::Status RetryShards(grpc::ServerContext*, const v1::RetryShardsRequest* request,
                           v1::RetryShardsResponse* response) override {
    response->set_retried(
        request->shards_size() == 0 ? 99u : static_cast<uint64_t>(request->shards_size()));
    return grpc::Status::OK;
  }

  grpc::Status ReportNode(grpc::ServerContext*, const v1::ReportNodeRequest* request,
                          v1::ReportNodeResponse*) override {
    MutexLock lock(&mutex_);
    nodes_[request->node()] = {.name = request->node(),
                               .role = request->role(),
                               .state = StateOf(request->what(), request->role()),
                               .pid = request->pid(),
                               .start = request->start(),
                               .restarts = static_cast<uint32_t>(request->start()) - 1};
    FILE* file = std::fopen((folder_ + "/reports").c_str(), "ae");
    fmt::print(file, "{} {} signal={} code={} token={} restarts={} role={} pid={}\n",
               request->node(), request->what(), request->signal(), request->exit_code(),
               request->computing_token(), request->start() - 1, request->role(), request->pid());
    std::fclose(file);
    return grpc::Status::OK;
  }

  grpc::Status Drain(grpc::ServerContext*, const v1::DrainRequest*, v1::DrainResponse*) override {
    MutexLock lock(&mutex_);
    state_ = Exists("slow-drain") ? JobState::kDraining : JobState::kDrained;
    return grpc::Status::OK;
  }

  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelRequest* request,
                      v1::CancelResponse*) override {
    MutexLock lock(&mutex_);
    state_ = request->failed() ? JobState::kFailed : JobState::kCancelled;
    reason_ = request->reason();
    return grpc::Status::OK;
  }

  grpc::Status GetManifest(grpc::ServerContext*, const v1::GetManifestRequest*,
                           v1::GetManifestResponse* response) override {
    response->set_snapshot_directory(folder_);
    return grpc::Status::OK;
  }

 private:
  /// What its predecessor was told; a real master has it in its journal.
  void ReadReports() {
    MutexLock lock(&mutex_);
    FILE* file = std::fopen((folder_ + "/reports").c_str(), "re");
    if (file == nullptr) return;
    char name[64], what[64], role[64];
    unsigned restarts = 0, pid = 0;
    while (std::fscanf(file,
                       "%63s %63s signal=%*u code=%*u token=%*u restarts=%u role=%63s pid=%u\n",
                       name, what, &restarts, role, &pid) == 5) {
      nodes_[name] = {.name = name,
                      .role = role,
                      .state = StateOf(what, role),
                      .pid = pid,
                      .start = restarts + 1,
                      .restarts = restarts};
    }
    std::fclose(file);
  }
  /// Whoever is started is heard at once, but for servers that refuse to start.
  NodeState StateOf(const std::string& what, const std::string& role) const {
    if (what != "started") return NodeState::kExited;
    return role == "ps" && Exists("refuse-ps") ? NodeState::kStarting : NodeState::kRunning;
  }
  bool Exists(const char* name) const {
    struct stat info;
    return ::stat((folder_ + "/" + name).c_str(), &info) == 0;
  }

  const std::string folder_;
  Mutex mutex_;
  JobState state_ MUSTER_GUARDED_BY(mutex_) = JobState::kRunning;
  std::string reason_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, NodeStatus> nodes_ MUSTER_GUARDED_BY(mutex_);
};

int RunFakeMaster(const std::string& folder, const std::string& address) {
  if (::access((folder + "/refuse").c_str(), F_OK) == 0) {
    fmt::print(stderr, "dataset train: no data\n");
    return 2;
  }
  FakeMaster master(folder);
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&master);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  while (true) ::pause();  // SIGTERM ends the process
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 2; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  if (argc > 1 && std::string(argv[1]) == "master") {
    return muster::RunFakeMaster(flags["--base-directory"], flags["--listen"]);
  }
  if (::access("refuse-ps", F_OK) == 0) {
    fmt::print(stderr, "--threads 0: a server needs one\n");
    return 2;
  }
  while (true) ::pause();
}
