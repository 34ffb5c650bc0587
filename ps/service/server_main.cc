#include "ps/service/server_main.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "ps/net/descriptors.h"
#include "ps/service/disk_storage.h"
#include "ps/service/parameter_server.h"
#include "sharding/job_identity.h"

namespace muster::ps {
namespace {

constexpr uint32_t kThreadsMax = 256;

absl::Status Check(const ServerOptions& options) {
  if (options.name.empty()) return absl::InvalidArgumentError("a server needs a name, as in ps-0");
  if (options.threads == 0 || options.threads > kThreadsMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} threads: a server has 1 to {}", options.threads, kThreadsMax));
  }
  if (options.master_address.empty()) {
    return absl::InvalidArgumentError("a server needs the master's address, as in 127.0.0.1:7000");
  }
  return CheckJobId("--job-id", options.job_id);
}

uint64_t RandomNonce() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

/// Waits for SIGTERM and SIGINT on a thread of its own, in the place of a handler. The first one
/// lets the server leave, the second ends it at once.
class SignalWatcher {
 public:
  /// Blocks the signals in this thread and those it starts.
  SignalWatcher() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void Start(ParameterServer* server) {
    thread_ = std::thread([this, server] {
      int signal = 0;
      sigwait(&signals_, &signal);
      server->RequestLeave();
      if (over_) return;
      sigwait(&signals_, &signal);
      server->RequestStop();
    });
  }
  void Stop() {
    over_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);  // taken by its sigwait, or blocked
    thread_.join();
  }

 private:
  sigset_t signals_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace

absl::Status RunServer(const ServerOptions& options) {
  MUSTER_RETURN_IF_ERROR(Check(options));
  const LaneLimits wanted;
  MUSTER_ASSIGN_OR_RETURN(const uint64_t descriptors,
                          RaiseDescriptorLimit(DescriptorsFor(wanted, options.threads)));
  MUSTER_ASSIGN_OR_RETURN(const LaneLimits limits, FitLimits(wanted, options.threads, descriptors));
  SignalWatcher watcher;
  const SystemClock clock;
  ParameterServer server(
      {.name = options.name,
       .socket_directory = options.socket_directory,
       .lanes = options.threads,
       .nonce = RandomNonce(),
       .start = options.start,
       .limits = limits,
       .leave_timeout = options.drain_timeout},
      MakeGrpcMasterClient(options.master_address, options.job_id),
      [](const ServerIdentity& identity) { return MakeDiskStorage(identity.snapshot_directory); },
      &clock);
  watcher.Start(&server);
  const absl::Status status = server.Run();
  watcher.Stop();
  Log(LogLevel::kInfo, "{} ends: {}", options.name,
      status.ok() ? std::string_view("stopped") : Message(status));
  return status;
}

}  // namespace muster::ps
