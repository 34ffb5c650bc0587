#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "admin/admin_client.h"
#include "base/clock.h"
#include "host/node_host.h"
#include "proto/messages/job_identity.h"
#include "scaler/decision/decider.h"
#include "scaler/nodes/node_keeper.h"
#include "scaler/nodes/plan.h"
#include "scaler/sensor/job_sensor.h"
#include "security/credentials.h"

namespace muster::scaler {

struct ScalerOptions {
  JobIdentity job;
  std::string run_id;
  std::string master_address;
  /// The scaler's certificate, for the master and for REST; without one, both are plain text.
  std::optional<CredentialFiles> tls;
  /// Of a run that begins.
  uint32_t servers = 1;
  uint32_t workers = 1;
  InitialLimits limits;
  KeeperOptions keeper;
  /// What nodes ask for and may have, by the job file, and what there is.
  JobShape shape;
  Decider::Options decider;
  /// Where `plan.json` is, and a lock that keeps a second scaler out; made when it is not there.
  std::string directory;
  std::string history_directory;  // of this run and those before; made when it is not there
  /// Where the nodes live; called once, when no other scaler is here.
  std::function<absl::StatusOr<std::unique_ptr<NodeHost>>()> open_host;
  /// Of the job: the master is asked with it, and who asks us shows it (base/token_file.h).
  std::string token_file;
  /// The REST interface: a port (0 = one that is free), its host, and what to do with the port
  /// once it is open.
  uint16_t rest_port = 0;
  std::string rest_host = "127.0.0.1";
  std::string rest_advertise;           // the host by which others reach it; empty: rest_host
  std::vector<std::string> rest_names;  // other hosts that requests may name
  std::function<absl::Status(uint16_t port)> on_rest;
  /// An eventfd that is counted up ten times a second; -1 = none.
  int beat_fd = -1;
  /// Readable when SIGINT, SIGTERM or SIGHUP came (a signalfd); -1 = none. A signal ends the scaler
  /// alone: nodes live on, and another scaler continues the run.
  int signal_fd = -1;
  /// Readable when the run is over (an eventfd): the scaler ends every node, then itself. -1 =
  /// none.
  int end_fd = -1;
  /// Several machines share `directory`, so a lost one may still have the lock. It is then passed
  /// over: something else keeps two scalers from acting.
  bool passes_lost_locks = false;
};

/// Where the job's master is asked.
MasterTarget MasterTargetOf(const ScalerOptions& options);

/// The body of `muster scaler`: adopts the nodes that an earlier scaler of this run has started,
/// keeps them and the others alive while the job trains, ends them when it is over. Nodes outlive
/// it when it is killed. Returns how it ended, which is at the job's end or by a signal. Errors:
/// its folders or sockets cannot be used, or another scaler uses them. Requires: called on the main
/// thread; `clock` outlives the call.
absl::StatusOr<KeeperOutcome> RunScaler(const ScalerOptions& options, const Clock* clock);

}  // namespace muster::scaler
