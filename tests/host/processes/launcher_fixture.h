#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/processes/node_launcher.h"
#include "tests/host/processes/held_process.h"
#include "tests/host/processes/next_report.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::testing {

/// Launchers with sockets, one after another, as the scalers of a run.
class LauncherFixture : public ::testing::Test {
 protected:
  LauncherFixture() { EXPECT_EQ(::pipe2(life_, O_CLOEXEC), 0); }
  ~LauncherFixture() override {
    launcher_.reset();
    EndLife();
    ::close(life_[0]);
    KillDescendants({});
  }
  void EndLife() {
    if (life_[1] >= 0) ::close(std::exchange(life_[1], -1));
  }

  /// The next scaler; the one before is gone.
  void Replace() {
    launcher_.reset();
    reports_.clear();
    absl::StatusOr<NodeSockets> sockets = NodeSockets::Open(folder_.File("nodes"));
    EXPECT_THAT(sockets.status(), IsOk());
    launcher_.emplace(NodeLauncher::Options{.program = MUSTER_SUPERVISE_PROGRAM,
                                            .log_directory = folder_.path(),
                                            .life_fd = life_[0]},
                      *std::move(sockets));
  }
  /// The same. Returns what it finds.
  std::vector<FoundNode> Succeed() {
    Replace();
    absl::StatusOr<std::vector<FoundNode>> found = launcher_->Find();
    EXPECT_THAT(found.status(), IsOk());
    return *std::move(found);
  }

  void Start(const std::string& script, uint32_t start = 1) {
    ASSERT_THAT(
        launcher_->Start({.name = "node", .command = {"sh", "-c", script}, .environment = {}},
                         {.start = start}),
        IsOk());
  }
  /// The next report, which is one of this kind.
  template <typename Report>
  Report Next() {
    return NextReport<Report>(&reports_, [this] {
      for (LaunchReport& report : launcher_->Wait(std::chrono::milliseconds(500), {})) {
        reports_.push_back(std::move(report));
      }
    });
  }
  pid_t NextPid() { return static_cast<pid_t>(Next<NodeStarted>().pid); }
  void ExpectExit(ExitStatus exit) { EXPECT_EQ(Next<NodeExited>().exit, exit); }
  std::string Family() { return muster::testing::Family(folder_.File("pids")); }
  std::vector<HeldProcess> FamilyProcesses() {
    return testing::ReadPids(folder_.File("pids"), 4,
                             [this] { launcher_->Wait(std::chrono::milliseconds(10), {}); });
  }

  TempDir folder_;
  int life_[2];
  std::optional<NodeLauncher> launcher_;
  std::deque<LaunchReport> reports_;
};

}  // namespace muster::testing
