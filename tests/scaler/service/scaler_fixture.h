#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "admin/admin_client.h"
#include "base/file.h"
#include "host/processes/local_host.h"
#include "scaler/service/scaler_main.h"
#include "tests/admin/small_master.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler::testing {

using ::muster::testing::IsOk;
using ::muster::testing::TempDir;
using std::chrono::milliseconds;

/// A real master of the job "id-1", and scripts as nodes.
class ScalerFixture : public ::testing::Test {
 protected:
  ScalerFixture() {
    EXPECT_EQ(::pipe2(life_, O_CLOEXEC), 0);
    EXPECT_THAT(MakeDirectories(folder_.File("logs")), IsOk());
    options_.job = {"id-1", "flights"};
    options_.run_id = run_id_;
    options_.master_address = master_.address();
    options_.servers = 1;
    options_.workers = 1;
    options_.token_file = master_.token_file();
    options_.directory = folder_.File("scaler");
    options_.history_directory = folder_.File("scaler/history");
    options_.open_host = [this] { return OpenHost(run_id_); };
    options_.beat_fd = beat_fd_;
    options_.keeper.restarts = {.crash_loop_exits = 3, .backoff_initial = milliseconds(1)};
    options_.keeper.finish_wait = milliseconds(1);
  }
  ~ScalerFixture() override {
    ::close(life_[1]);
    KillDescendants({});
    ::close(life_[0]);
    ::close(beat_fd_);
  }

  absl::StatusOr<std::unique_ptr<LocalHost>> OpenHost(const std::string& run_id) {
    return LocalHost::Open({.program = MUSTER_SUPERVISE_PROGRAM,
                            .log_directory = folder_.File("logs"),
                            .life_fd = life_[0],
                            .socket_directory = folder_.File("nodes"),
                            .run_id = run_id,
                            .command_of = [this](const std::string& node, NodeRole role) {
                              return CommandOf(node, role);
                            }});
  }
  NodeCommand CommandOf(const std::string& node, NodeRole role) {
    const std::string script = role == NodeRole::kWorker ? worker_ : server_script_;
    return {.name = node,
            .command = {"sh", "-c", fmt::format("echo start $MUSTER_START; {}", script)},
            .environment = {}};
  }
  std::string Log(const std::string& node) {
    return ReadFile(folder_.File("logs/" + node + ".log"), 1 << 20).value_or("");
  }
  JobStatus Status() { return *client_->GetStatus(); }
  std::string ExitOf(const std::string& node) {
    const JobStatus job = Status();
    for (const NodeStatus& status : job.nodes) {
      if (status.name == node && status.state == NodeState::kExited) return status.last_exit;
    }
    return "none";
  }
  /// Runs the scaler until `condition` holds and the job was cancelled for it.
  absl::StatusOr<KeeperOutcome> RunUntil(const std::function<bool()>& condition) {
    std::thread canceller([&] {
      for (int i = 0; i < 2'000 && !condition(); ++i) ::poll(nullptr, 0, 10);
      EXPECT_TRUE(condition());
      EXPECT_THAT(client_->Cancel(v1::CancelRequest()), IsOk());
    });
    absl::StatusOr<KeeperOutcome> outcome = RunScaler(options_, &clock_);
    canceller.join();
    return outcome;
  }

  TempDir folder_;
  /// Names control groups, too: two of these at a time must not share them.
  const std::string run_id_ = fmt::format("test-{}", ::getpid());
  const SystemClock clock_;
  muster::testing::SmallMaster master_{1, run_id_};
  const std::unique_ptr<AdminClient> client_ = master_.Client({"id-1", "flights"}, WhenAway::kWait);
  int life_[2];
  int beat_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::string worker_ = "exec sleep 1000";
  std::string server_script_ = "exec sleep 1000";
  ScalerOptions options_;
};

}  // namespace muster::scaler::testing
