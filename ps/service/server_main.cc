#include "ps/service/server_main.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/descriptor_limit.h"
#include "base/log.h"
#include "base/status.h"
#include "proto/messages/job_identity.h"
#include "ps/net/connection_limits.h"
#include "ps/service/parameter_server.h"
#include "ps/service/stored_snapshots.h"
#include "security/tls_context.h"

namespace muster::ps {
namespace {

constexpr uint32_t kThreadsMax = 256;

absl::Status Check(const ServerOptions& options) {
  if (options.name.empty())
    return absl::InvalidArgumentError("a server needs a name, for example ps-0");
  if (options.threads == 0 || options.threads > kThreadsMax) {
    return absl::InvalidArgumentError(fmt::format(
        "a server cannot have {} threads; 1 to {} are allowed", options.threads, kThreadsMax));
  }
  if (options.master_address.empty()) {
    return absl::InvalidArgumentError(
        "a server needs the master's address, for example 127.0.0.1:7000");
  }
  return CheckJobId("--job-id", options.job_id);
}

uint64_t RandomNonce() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

/// Waits for SIGTERM and SIGINT on a separate thread, instead of a handler. The first one lets the
/// server leave, the second ends it at once. A server whose threads do not end is ended with its
/// process.
class SignalWatcher {
 public:
  /// Blocks the signals in this thread and those it starts. `clock` must outlive the watcher.
  SignalWatcher(const ServerOptions& options, const Clock* clock)
      : leave_max_(options.drain_timeout + options.end_timeout),
        end_max_(options.end_timeout),
        clock_(clock) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void Start(ParameterServer* server) {
    thread_ = std::thread([this, server] {
      int signal = 0;
      sigwait(&signals_, &signal);
      if (!ending_) {
        server->RequestLeave();
        WaitUntil(clock_->Now() + leave_max_);
      }
      if (!ending_) server->RequestStop();
      const TimePoint deadline = clock_->Now() + end_max_;
      while (!over_ && clock_->Now() < deadline) WaitUntil(deadline);
      if (over_) return;
      Log(LogLevel::kError,
          "a thread of this server hangs; the process ends without waiting for it");
      ::_exit(1);
    });
  }
  /// The server no longer serves, and its threads should end. Call it once, like Stop, after Start.
  void Ending() {
    ending_ = true;
    Wake();
  }
  void Stop() {
    ending_ = over_ = true;
    Wake();
    thread_.join();
  }

 private:
  void Wake() {
    pthread_kill(thread_.native_handle(), SIGTERM);
  }  // its wait takes the signal, or the signal is blocked
  /// Until a signal comes, or it is `deadline`. A pause of the process interrupts the wait.
  void WaitUntil(TimePoint deadline) const {
    while (true) {
      const int64_t left = (deadline - clock_->Now()).count();
      if (left <= 0) return;
      const timespec limit{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
      if (sigtimedwait(&signals_, nullptr, &limit) >= 0 || errno != EINTR) return;
    }
  }

  const std::chrono::nanoseconds leave_max_, end_max_;
  const Clock* const clock_;
  sigset_t signals_;
  std::atomic<bool> ending_ = false, over_ = false;
  std::thread thread_;
};

/// For the lanes' connections over TCP: workers of the job that the certificate names. Empty
/// without a certificate.
absl::StatusOr<net::TlsContextSource> WorkersTls(const ServerOptions& options, const Clock* clock) {
  if (!options.tls.has_value()) return net::TlsContextSource();
  MUSTER_ASSIGN_OR_RETURN(
      const Credentials own,
      LoadCredentials(*options.tls, {options.job_id, Role::kServer}, clock->Wall()));
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<TlsContext> context,
      TlsContext::Make(ServerTls{*options.tls, own.identity.job_id, {Role::kWorker}}, clock));
  return net::SourceOf(std::move(context));
}

}  // namespace

absl::Status RunServer(const ServerOptions& options) {
  MUSTER_RETURN_IF_ERROR(Check(options));
  const LaneLimits wanted;
  MUSTER_ASSIGN_OR_RETURN(const uint64_t descriptors,
                          RaiseDescriptorLimit(DescriptorsFor(wanted, options.threads)));
  MUSTER_ASSIGN_OR_RETURN(const LaneLimits limits, FitLimits(wanted, options.threads, descriptors));
  const SystemClock clock;
  // Before gRPC starts threads, which would not have the signals blocked.
  SignalWatcher watcher(options, &clock);
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<MasterClient> master,
      MakeGrpcMasterClient({options.master_address, options.job_id, options.tls}, clock));
  MUSTER_ASSIGN_OR_RETURN(net::TlsContextSource tls, WorkersTls(options, &clock));
  ParameterServer server(
      {.name = options.name,
       .socket_directory = options.socket_directory,
       .find_place = [&options] { return FindListenPlace(options.listen, options.master_address); },
       .lanes = options.threads,
       .nonce = RandomNonce(),
       .start = options.start,
       .limits = limits,
       .tls = std::move(tls),
       .leave_timeout = options.drain_timeout,
       .absence = {.max = options.master_away_max},
       .on_end = [&watcher] { watcher.Ending(); }},
      std::move(master),
      [&options](const RegisterServerReply& registered) {
        return OpenStorage(options.snapshot_directory.empty() ? registered.snapshot_directory
                                                              : options.snapshot_directory);
      },
      &clock);
  watcher.Start(&server);
  const absl::Status status = server.Run();
  watcher.Stop();
  Log(LogLevel::kInfo, "{} ends: {}", options.name,
      status.ok() ? std::string_view("stopped") : Message(status));
  return status;
}

}  // namespace muster::ps
