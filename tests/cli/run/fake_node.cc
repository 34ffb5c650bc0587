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
                         v1::JobStatus* status) override {
    MutexLock lock(&mutex_);
    if (state_ == v1::JOB_STATE_RUNNING && Exists("succeed")) state_ = v1::JOB_STATE_SUCCEEDED;
    status->set_job("demo");
    status->set_state(state_);
    status->set_reason(reason_);
    const bool done = state_ == v1::JOB_STATE_SUCCEEDED;
    v1::DatasetStatus* dataset = status->add_datasets();
    dataset->set_name("train");
    dataset->set_epochs_total(1);
    v1::EpochStatus* epoch = dataset->add_epochs();
    epoch->set_records_expected(100);
    epoch->set_records_done(done ? 100 : 40);
    epoch->set_records_committed(done ? 100 : 20);
    for (const auto& [name, node] : nodes_) *status->add_nodes() = node;
    for (v1::NodeStatus& node : *status->mutable_nodes()) {
      if (node.name() == "ps-0" && Exists("lost")) node.set_state("lost");
    }
    status->mutable_counters()->set_redelivered_minibatches(3);
    status->set_events_newest(1);
    return grpc::Status::OK;
  }

  grpc::Status ListEvents(grpc::ServerContext*, const v1::ListEventsRequest* request,
                          v1::ListEventsResponse* response) override {
    if (request->after() > 0) return grpc::Status::OK;
    v1::Event* event = response->add_events();
    event->set_sequence(1);
    event->set_wall_us(1'700'000'000'000'000);
    event->set_kind("job-started");
    event->set_text("with 16 shards");
    return grpc::Status::OK;
  }

  grpc::Status ListShards(grpc::ServerContext*, const v1::ListShardsRequest*,
                          v1::ListShardsResponse* response) override {
    response->set_total(1);
    v1::ShardStatus* shard = response->add_shards();
    shard->mutable_id()->set_epoch(1);
    shard->mutable_id()->set_index(17);
    shard->set_dataset("train");
    shard->set_state("failed");
    shard->add_reasons("worker-0: SIGSEGV");
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
    v1::NodeStatus& node = nodes_[request->node()];
    node.set_name(request->node());
    node.set_role(request->role());
    node.set_pid(request->pid());
    node.set_state(StateOf(request->what(), request->role()));
    node.set_start(request->start());
    node.set_restarts(static_cast<uint32_t>(request->start()) - 1);
    FILE* file = std::fopen((folder_ + "/reports").c_str(), "ae");
    fmt::print(file, "{} {} signal={} code={} token={} restarts={} role={} pid={}\n",
               request->node(), request->what(), request->signal(), request->exit_code(),
               request->computing_token(), request->start() - 1, request->role(), request->pid());
    std::fclose(file);
    return grpc::Status::OK;
  }

  grpc::Status Drain(grpc::ServerContext*, const v1::DrainRequest*, v1::DrainResponse*) override {
    MutexLock lock(&mutex_);
    state_ = Exists("slow-drain") ? v1::JOB_STATE_DRAINING : v1::JOB_STATE_DRAINED;
    return grpc::Status::OK;
  }

  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelRequest* request,
                      v1::CancelResponse*) override {
    MutexLock lock(&mutex_);
    state_ = request->failed() ? v1::JOB_STATE_FAILED : v1::JOB_STATE_CANCELLED;
    reason_ = request->reason();
    return grpc::Status::OK;
  }

  grpc::Status GetManifest(grpc::ServerContext*, const v1::GetManifestRequest*,
                           v1::GetManifestResponse* response) override {
    response->set_snapshot_directory(folder_);
    return grpc::Status::OK;
  }

 private:
  /// What the one before was told: a real master has a journal.
  void ReadReports() {
    MutexLock lock(&mutex_);
    FILE* file = std::fopen((folder_ + "/reports").c_str(), "re");
    if (file == nullptr) return;
    char name[64], what[64], role[64];
    unsigned restarts = 0, pid = 0;
    while (std::fscanf(file,
                       "%63s %63s signal=%*u code=%*u token=%*u restarts=%u role=%63s pid=%u\n",
                       name, what, &restarts, role, &pid) == 5) {
      v1::NodeStatus& node = nodes_[name];
      node.set_name(name);
      node.set_role(role);
      node.set_pid(pid);
      node.set_restarts(restarts);
      node.set_start(restarts + 1);
      node.set_state(StateOf(what, role));
    }
    std::fclose(file);
  }
  /// Whoever is started is heard at once, but for servers that refuse to start.
  std::string StateOf(const std::string& what, const std::string& role) const {
    if (what != "started") return "exited";
    return role == "ps" && Exists("refuse-ps") ? "starting" : "running";
  }
  bool Exists(const char* name) const {
    struct stat info;
    return ::stat((folder_ + "/" + name).c_str(), &info) == 0;
  }

  const std::string folder_;
  Mutex mutex_;
  v1::JobState state_ MUSTER_GUARDED_BY(mutex_) = v1::JOB_STATE_RUNNING;
  std::string reason_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, v1::NodeStatus> nodes_ MUSTER_GUARDED_BY(mutex_);
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
