#include "scaler/service/scaler_main.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "admin/master_link.h"
#include "base/address.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "base/token_file.h"
#include "scaler/dashboard/dashboard_files.h"
#include "scaler/decision/log/event_log.h"
#include "scaler/nodes/plan.h"
#include "scaler/rest/server/http_server.h"
#include "scaler/service/call_queue.h"
#include "scaler/service/live_job_api.h"
#include "scaler/service/plan_file.h"
#include "scaler/service/scaler_loop.h"

namespace muster::scaler {
namespace {

/// If a scaler is killed just when it starts a process, that process holds the scaler's lock for a
/// moment.
constexpr int kLockTries = 25;
constexpr std::chrono::milliseconds kLockPause{20};
constexpr std::chrono::milliseconds kPollInterval{250};
constexpr std::chrono::milliseconds kPartitionsInterval{4'000};
constexpr std::chrono::milliseconds kDeadline{2'000};
/// The deadline of the REST interface's questions to the master. It is long enough for a master
/// that is being restarted.
constexpr std::chrono::milliseconds kRestDeadline{3'000};

std::string PlanPath(const ScalerOptions& options) {
  return options.directory + "/plan.json";
}

/// Adopts the found nodes by the plan of an earlier scaler of this run, or by a new plan if there
/// is none.
Adoption AdoptFound(const ScalerOptions& options, const std::vector<FoundNode>& found,
                    const Clock* clock) {
  absl::StatusOr<Plan> plan = ReadPlan(PlanPath(options));
  if (plan.ok() && plan->run_id == options.run_id) return Adopt(*std::move(plan), found);
  Plan fresh = NewPlan(options.run_id, options.servers, options.workers, options.limits);
  fresh.paused = options.decider.paused;
  fresh.began_wall_us = static_cast<uint64_t>(clock->Wall().count());
  if (plan.ok() || absl::IsNotFound(plan.status())) return Adopt(std::move(fresh), found);
  Log(LogLevel::kError, "{}; nodes that run are found without it", Message(plan.status()));
  return AdoptWithoutPlan(std::move(fresh), found);
}

absl::StatusOr<int> TakeLock(const std::string& path, bool passes_lost_locks) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  for (int tries = 0; ::flock(fd, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno == EWOULDBLOCK && tries < kLockTries) {
      SleepFor(kLockPause);
      continue;
    }
    const absl::Status locked =
        ErrnoStatus(errno, fmt::format("cannot lock {}: does another scaler run here?", path));
    if (passes_lost_locks) {
      Log(LogLevel::kWarning, "{} It goes on without the lock", Message(locked));
      return fd;
    }
    ::close(fd);
    return locked;
  }
  return fd;
}

/// The port of the former scaler, which has just died, is free at once. If another program has
/// taken it meanwhile, the scaler takes another port. Commands find it, but open pages do not.
std::unique_ptr<rest::HttpServer> Listen(rest::HttpServerOptions options, rest::JobApi* job,
                                         const Clock* clock, uint16_t* port) {
  while (true) {
    auto server = std::make_unique<rest::HttpServer>(options, job, clock);
    const absl::StatusOr<uint16_t> listening = server->Listen();
    if (listening.ok()) {
      *port = *listening;
      return server;
    }
    Log(LogLevel::kError, "{}", Message(listening.status()));
    if (std::exchange(options.port, 0) == 0) return nullptr;
  }
}

std::vector<std::string> NamesOf(const ScalerOptions& options) {
  std::vector<std::string> names;
  if (!options.rest_advertise.empty()) names.push_back(options.rest_advertise);
  names.insert(names.end(), options.rest_names.begin(), options.rest_names.end());
  return names;
}

absl::Status OpenRest(const ScalerOptions& options, uint16_t port, rest::HttpServer* server) {
  server->Start();
  const std::string& host =
      options.rest_advertise.empty() ? options.rest_host : options.rest_advertise;
  Log(LogLevel::kInfo, "REST interface and dashboard at {}://{}/",
      options.tls.has_value() ? "https" : "http", JoinHostPort(host, port));
  if (!options.tls.has_value() && !IsLoopbackHost(options.rest_host)) {
    Log(LogLevel::kWarning,
        "INSECURE: the REST interface listens at {} without TLS (spec.security.insecure). "
        "Everybody who sees a request can read the token in it and steer the job",
        options.rest_host);
  }
  return options.on_rest ? options.on_rest(port) : absl::OkStatus();
}

/// Creates the token if it is missing. The master does so, too: the first of the two that gets a
/// call creates it.
rest::TokenReader ReaderOf(const std::string& file) {
  return [file, remark = std::string()]() mutable -> std::string {
    absl::StatusOr<std::string> token = LoadOrMakeToken(file);
    // The reason is logged once, and not with every request.
    const std::string why(Message(token.status()));
    if (std::exchange(remark, why) != why && !token.ok()) {
      Log(LogLevel::kError, "the REST interface refuses all calls: {}", why);
    }
    return token.ok() ? *std::move(token) : "";
  };
}

/// Returns nullptr if there can be no REST interface; the log then says why.
std::unique_ptr<rest::HttpServer> MakeRest(const ScalerOptions& options, rest::JobApi* job,
                                           const Clock* clock) {
  uint16_t port = 0;
  rest::HttpServerOptions wanted{.host = options.rest_host,
                                 .names = NamesOf(options),
                                 .port = options.rest_port,
                                 .read_token = ReaderOf(options.token_file),
                                 .files = dashboard::DashboardFiles()};
  if (options.tls.has_value()) {
    wanted.tls = ServerTls{.files = *options.tls, .job_id = options.job.id, .clients = {}};
  }
  std::unique_ptr<rest::HttpServer> server = Listen(std::move(wanted), job, clock, &port);
  if (server == nullptr) return nullptr;
  const absl::Status opened = OpenRest(options, port, server.get());
  if (opened.ok()) return server;
  Log(LogLevel::kError, "no REST interface: {}", Message(opened));
  return nullptr;
}

}  // namespace

MasterTarget MasterTargetOf(const ScalerOptions& options) {
  return {.address = options.master_address,
          .job = options.job,
          .token_file = options.token_file,
          .tls = options.tls};
}

absl::StatusOr<KeeperOutcome> RunScaler(const ScalerOptions& options, const Clock* clock) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(options.directory));
  MUSTER_ASSIGN_OR_RETURN(const int lock,
                          TakeLock(options.directory + "/lock", options.passes_lost_locks));
  absl::Cleanup unlock = [lock] { ::close(lock); };
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<EventLog> events,
                          EventLog::Open(options.directory, {}, clock));
  for (const std::string& damage : events->damage()) Log(LogLevel::kWarning, "{}", damage);
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<NodeHost> host, options.open_host());
  if (!host->limits_remark().empty()) Log(LogLevel::kWarning, "{}", host->limits_remark());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<FoundNode> found, host->Find());
  Adoption adoption = AdoptFound(options, found, clock);
  for (const FoundNode& node : adoption.stale) host->Discard(node);
  for (const auto& [name, node] : adoption.plan.nodes) {
    if (!host->Has(name)) continue;
    Log(LogLevel::kInfo, "{} is there already, start {}", name, node.starts);
  }
  PictureBoard board;
  CallQueue calls;
  std::unique_ptr<rest::HttpServer> server;
  ScalerLoop loop({.options = &options,
                   .clock = clock,
                   .host = host.get(),
                   .link = std::make_unique<MasterLink>(
                       MakeAdminClient(MasterTargetOf(options), kDeadline, WhenAway::kWait),
                       options.run_id, kPollInterval, clock, kPartitionsInterval),
                   .adoption = std::move(adoption),
                   .events = events.get(),
                   .board = &board,
                   .calls = &calls,
                   .notify = [&server] {
                     if (server != nullptr) server->NotifyEvents();
                   }});
  const std::unique_ptr<AdminClient> master =
      MakeAdminClient(MasterTargetOf(options), kRestDeadline, WhenAway::kWait);
  LiveJobApi api({.host = host.get()}, &board, events.get(), master.get(), &calls, &loop);
  server = MakeRest(options, &api, clock);
  const KeeperOutcome outcome = loop.Run();
  if (server != nullptr) server->Finish();
  return outcome;
}

}  // namespace muster::scaler
