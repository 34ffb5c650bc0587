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
  /// The scaler's certificate, for its calls to the master and for REST. Without one, both are
  /// plain text.
  std::optional<CredentialFiles> tls;
  /// The number of nodes in a new run.
  uint32_t servers = 1;
  uint32_t workers = 1;
  InitialLimits limits;
  KeeperOptions keeper;
  /// What nodes ask for and may have by the job file, and what the machine has.
  JobShape shape;
  Decider::Options decider;
  /// The folder of `plan.json` and of the lock that keeps a second scaler out. It is created if it
  /// is missing.
  std::string directory;
  std::string history_directory;  // of this run and earlier ones; it is created if it is missing
  /// Opens the host of the nodes. Called once, when no other scaler is here.
  std::function<absl::StatusOr<std::unique_ptr<NodeHost>>()> open_host;
  /// The job's token. The scaler shows it to the master, and callers of the scaler must show it
  /// (base/token_file.h).
  std::string token_file;
  /// The REST interface: its port (0 = a free one), its host, and a function that gets the port
  /// when it is open.
  uint16_t rest_port = 0;
  std::string rest_host = "127.0.0.1";
  std::string rest_advertise;           // the host under which others reach it; empty: rest_host
  std::vector<std::string> rest_names;  // further hosts that requests may name
  std::function<absl::Status(uint16_t port)> on_rest;
  /// An eventfd that the scaler increases ten times a second; -1 = none.
  int beat_fd = -1;
  /// A signalfd for SIGINT, SIGTERM and SIGHUP; -1 = none. A signal ends only the scaler. Nodes
  /// live on, and another scaler continues the run.
  int signal_fd = -1;
  /// An eventfd that is readable when the run is over; -1 = none. Then the scaler ends every node,
  /// and after that itself.
  int end_fd = -1;
  /// If true, several machines share `directory`, and a lost machine may still hold the lock. The
  /// scaler then starts without the lock, because something else prevents that two scalers act.
  bool passes_lost_locks = false;
};

/// How to reach the job's master.
MasterTarget MasterTargetOf(const ScalerOptions& options);

/// The body of `muster scaler`. It adopts the nodes that an earlier scaler of this run has started,
/// keeps all nodes alive while the job trains, and ends them when the job is over. If the scaler is
/// killed, nodes live on. It returns how it ended: at the job's end or by a signal. Errors: it
/// cannot use its folders or sockets, or another scaler uses them. Requires: called on the main
/// thread; `clock` outlives the call.
absl::StatusOr<KeeperOutcome> RunScaler(const ScalerOptions& options, const Clock* clock);

}  // namespace muster::scaler
