#include "master/service/master_server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <set>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/address.h"
#include "base/descriptor_limit.h"
#include "base/log.h"
#include "base/status.h"
#include "base/token_file.h"
#include "master/service/master_rpc.h"
#include "master/service/owner_loop.h"
#include "master/service/snapshot_deletions.h"
#include "master/service/snapshot_files.h"
#include "master/service/snapshot_owner.h"
#include "master/service/task_threads.h"
#include "proto/rpc/channel.h"
#include "security/rpc/grpc_credentials.h"

namespace muster {
namespace {

constexpr int kRequestBytesMax = 64 << 20;
/// Open files for the journal and the connections of workers, servers and operators. The usual
/// limit of 1,024 is soon reached, and then gRPC's server never accepts connections again.
constexpr uint64_t kDescriptors = 64 << 10;
constexpr std::chrono::milliseconds kStopDeadline{500};
/// Encoding an answer takes about as long as a step.
constexpr uint32_t kAnswerThreads = 2;
constexpr size_t kAnswersMax = 20'000;

class MasterServerImpl final : public MasterServer {
 public:
  MasterServerImpl(Options options, Journal* journal, const Clock* clock)
      : options_(std::move(options)), journal_(journal), clock_(clock) {}
  ~MasterServerImpl() override { Stop(); }

  absl::Status Begin() {
    MUSTER_RETURN_IF_ERROR(
        CheckListening(options_.listen_address, options_.job.security, options_.tls.has_value()));
    MUSTER_RETURN_IF_ERROR(LoadOrMakeToken(options_.token_file).status());
    MUSTER_RETURN_IF_ERROR(RaiseDescriptorLimit(kDescriptors).status());
    DurableState state = journal_->TakeState();
    MUSTER_RETURN_IF_ERROR(MasterCore::CheckFits(options_.core, state));
    MUSTER_ASSIGN_OR_RETURN(snapshots_, OpenStore(options_.job.snapshot_directory));
    deletions_ = std::make_unique<SnapshotDeletions>(snapshots_.get(), clock_);
    const std::set<std::string> named = NamedSnapshots(state);
    const AttemptNumber attempt =
        state.group.group.has_value() ? state.group.group->attempt : AttemptNumber();
    auto core = std::make_unique<MasterCore>(options_.core, std::move(state),
                                             StepTime{clock_->Now(), clock_->Wall()});
    MUSTER_RETURN_IF_ERROR(OpenFollowers(*core));
    const bool new_run = core->new_run();
    const uint64_t incarnation = core->incarnation().value();
    loop_ = std::make_unique<OwnerLoop>(
        std::move(core), journal_, clock_, OwnerLoop::Options{},
        [this](const std::vector<std::string>& names) { deletions_->Delete(names); });
    // Takes the port first, so that a second master fails before it increases the incarnation.
    MUSTER_RETURN_IF_ERROR(Listen());
    // Checked before anything is deleted.
    const absl::Status claimed = ClaimSnapshotDirectory(
        snapshots_.get(), {journal_->job_id(), options_.job.name, options_.job.state_directory},
        named);
    // After a restart, the run has claimed it already, and training does not need the snapshots.
    if (new_run || !IsOnlyUnseen(claimed)) MUSTER_RETURN_IF_ERROR(claimed);
    if (new_run) {
      deletions_->Sweep([store = snapshots_.get(), named, incarnation, attempt] {
        return OrphanSnapshots(store, named, MasterIncarnation(incarnation), attempt);
      });
    }
    MUSTER_RETURN_IF_ERROR(loop_->Start());
    for (const auto& follower : followers_) follower->Start();
    if (!options_.tls.has_value() &&
        !IsLoopbackHost(ParseHostPort(options_.listen_address).value().host)) {
      Log(LogLevel::kWarning,
          "INSECURE: the master listens at {} without TLS (spec.security.insecure). Everybody who "
          "reaches it can read and change the job",
          options_.listen_address);
    }
    Log(LogLevel::kInfo, "job '{}': master incarnation {} serves on port {}{}", options_.job.name,
        incarnation, port_, new_run ? ", a new run" : ", after a restart");
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  std::optional<absl::Status> failure() const override { return loop_->failure(); }
  void Stop() override {
    for (const auto& follower : followers_) follower->RequestStop();
    for (const auto& follower : followers_) follower->Stop();
    // Stops the loop before the server: the loop answers all waiting calls, so the server can shut
    // down.
    if (loop_ != nullptr) loop_->Stop();
    answers_.Stop();
    admin_answers_.Stop();
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::time_point() + StopAt());
      server_.reset();
    }
    // Stopped after the server, so that a slow disk does not keep the port occupied.
    if (deletions_ != nullptr) deletions_->Stop();
  }

 private:
  std::chrono::system_clock::duration StopAt() const {
    return std::chrono::duration_cast<std::chrono::system_clock::duration>(clock_->Wall() +
                                                                           kStopDeadline);
  }

  absl::Status OpenFollowers(const MasterCore& core) {
    const StreamTable& streams = core.ledger().streams();
    for (const DatasetId dataset : streams.datasets()) {
      MUSTER_ASSIGN_OR_RETURN(
          std::unique_ptr<SourceFollower> follower,
          options_.sources->Follow(dataset,
                                   {.progress = streams.ProgressOf(dataset),
                                    .tell = [this](const auto& look) { return TellLook(look); },
                                    .clock = clock_}));
      if (follower != nullptr) followers_.push_back(std::move(follower));
    }
    return absl::OkStatus();
  }

  /// Waits for the sync, so its result may be told to any process.
  absl::StatusOr<FollowOptions::Progress> TellLook(const StreamLook& look) {
    struct Answer {
      Mutex mutex;
      CondVar given;
      std::optional<absl::Status> status MUSTER_GUARDED_BY(mutex);
      FollowOptions::Progress progress;
    };
    auto answer = std::make_shared<Answer>();
    loop_->Post({[look, answer](MasterCore& core, StepTime at) {
                   core.TakeLook(look, at);
                   answer->progress = core.ledger().streams().ProgressOf(look.dataset);
                   return absl::OkStatus();
                 },
                 [answer](const absl::Status& status) {
                   MutexLock lock(&answer->mutex);
                   answer->status = status;
                   answer->given.SignalAll();
                 }});
    MutexLock lock(&answer->mutex);
    while (!answer->status.has_value()) answer->given.Wait(&answer->mutex);
    MUSTER_RETURN_IF_ERROR(*answer->status);
    return answer->progress;
  }

  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> PortCredentials() const {
    if (!options_.tls.has_value()) return grpc::InsecureServerCredentials();
    return MakeGrpcServerCredentials(
        {.files = *options_.tls, .ours = {journal_->job_id(), Role::kMaster}}, clock_->Wall());
  }

  absl::Status Listen() {
    const RpcContext context{&options_.job,       {journal_->job_id(), options_.job.name},
                             loop_.get(),         &answers_,
                             options_.token_file, options_.sources,
                             deletions_.get(),    options_.tls.has_value()};
    MUSTER_ASSIGN_OR_RETURN(const auto credentials, PortCredentials());
    RpcContext admin_context = context;
    admin_context.answers = &admin_answers_;
    services_.push_back(MakeWorkerRpc(context));
    services_.push_back(MakeServerRpc(context));
    services_.push_back(MakeAdminRpc(admin_context));
    // Debian's Abseil checks for cycles of locks at every lock of gRPC.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    grpc::ServerBuilder builder;
    // Without this, a second master could share the port unnoticed.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(kRequestBytesMax);
    DetectVanishedClients(&builder);
    builder.AddListeningPort(options_.listen_address, credentials, &port_);
    for (const auto& service : services_) builder.RegisterService(service.get());
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && port_ != 0) return absl::OkStatus();
    return absl::UnavailableError(fmt::format(
        "cannot listen on {}: the port is taken (see `ss -ltnp`); stop the other program or set "
        "another spec.master.address",
        options_.listen_address));
  }

  const Options options_;
  Journal* const journal_;
  const Clock* const clock_;
  TaskThreads answers_{{.name = "answers", .threads = kAnswerThreads, .waiting_max = kAnswersMax}};
  /// For operators: a page or a metric may take long, but must not delay an answer to a worker or a
  /// server.
  TaskThreads admin_answers_{{.name = "admin-answers", .waiting_max = kAnswersMax}};
  std::unique_ptr<ObjectStore> snapshots_;
  std::unique_ptr<SnapshotDeletions> deletions_;
  std::unique_ptr<OwnerLoop> loop_;
  std::vector<std::unique_ptr<SourceFollower>> followers_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace

absl::Status CheckListening(const std::string& address, const SecuritySpec& security, bool tls) {
  MUSTER_ASSIGN_OR_RETURN(const HostPort place, ParseHostPort(address));
  if (tls || security.insecure || IsLoopbackHost(place.host)) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "'{}' is not a loopback address, so its connections must be TLS: name the folder of the "
      "job's "
      "certificates with --tls. In a network that you trust, set spec.security.insecure: true",
      address));
}

absl::StatusOr<std::unique_ptr<MasterServer>> MasterServer::Start(Options options, Journal* journal,
                                                                  const Clock* clock) {
  auto server = std::make_unique<MasterServerImpl>(std::move(options), journal, clock);
  MUSTER_RETURN_IF_ERROR(server->Begin());
  return server;
}

}  // namespace muster
