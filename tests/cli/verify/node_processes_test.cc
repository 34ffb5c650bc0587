#include "cli/verify/node_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::verify {
namespace {

constexpr int kPatienceMs = 60'000;  // only a failing test waits so long
const NodePrograms kPrograms{.muster = "/opt/muster/bin/muster", .trainer = "/opt/worker"};

std::optional<Role> RoleOf(const std::vector<std::string>& command_line) {
  const auto node = ClassifyProcess(7, {.command_line = command_line}, kPrograms);
  return node.has_value() ? std::optional(node->role) : std::nullopt;
}

TEST(ClassifyProcessTest, NodesAndOthers) {
  EXPECT_EQ(RoleOf({"/opt/worker", "--slow-us", "3"}), Role::kWorker);
  EXPECT_EQ(RoleOf({"/opt/muster/bin/muster", "master", "--job", "x"}), Role::kMaster);
  EXPECT_EQ(RoleOf({"/opt/muster/bin/muster", "scaler", "--job", "x"}), Role::kScaler);
  EXPECT_EQ(RoleOf({"/opt/muster/bin/muster", "ps", "--name", "ps-1"}), Role::kServer);
  EXPECT_EQ(RoleOf({"/opt/muster/bin/muster", "run", "job.yaml"}), std::nullopt);
  EXPECT_EQ(RoleOf({"/opt/muster/bin/muster", "supervise", "--name", "w", "--", "/opt/worker"}),
            std::nullopt);
  EXPECT_EQ(RoleOf({"/opt/muster/bin/muster"}), std::nullopt);
  EXPECT_EQ(RoleOf({"/usr/bin/muster", "master"}), std::nullopt);
  EXPECT_EQ(RoleOf({}), std::nullopt);
}

TEST(ClassifyProcessTest, AProcessIsKnownByItsNodesNameAndStart) {
  const auto known = [](const std::vector<std::string>& command_line,
                        const std::vector<std::string>& environment = {}) {
    const auto node =
        ClassifyProcess(7, {.command_line = command_line, .environment = environment}, kPrograms);
    return node->name + " " + ToString(node->start);
  };
  EXPECT_EQ(known({kPrograms.muster, "ps", "--name", "ps-1"}, {"A=b", "MUSTER_START=3"}), "ps-1 3");
  EXPECT_EQ(known({kPrograms.muster, "ps", "--name"}, {"MUSTER_STARTED=3"}), " 0");
  EXPECT_EQ(known({kPrograms.trainer}, {"MUSTER_NODE=worker-2", "MUSTER_START=12"}), "worker-2 12");
  EXPECT_EQ(known({kPrograms.muster, "master"}, {"MUSTER_START=1"}), "master 1");
  EXPECT_EQ(known({kPrograms.muster, "scaler"}), "scaler 0");
}

/// A child that looks like a worker, and waits.
class Child {
 public:
  Child() {
    std::string name = kPrograms.trainer;
    std::string time = "1000";
    char* argv[] = {name.data(), time.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, "/bin/sleep", nullptr, nullptr, argv, environ), 0);
    // The kernel shows a fresh process for a moment without its command line.
    for (int i = 0; i < kPatienceMs && FindNodes(kPrograms).empty(); ++i) ::poll(nullptr, 0, 1);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    Reap();
  }
  pid_t pid() const { return pid_; }
  int Reap() {
    int status = 0;
    if (!reaped_) ::waitpid(pid_, &status, 0);
    reaped_ = true;
    return status;
  }

 private:
  pid_t pid_ = -1;
  bool reaped_ = false;
};

TEST(FindNodesTest, AmongOwnDescendantsAlone) {
  EXPECT_TRUE(FindNodes(kPrograms).empty());
  const Child child;
  const std::vector<NodeProcess> nodes = FindNodes(kPrograms);
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].pid, child.pid());
  EXPECT_EQ(nodes[0].role, Role::kWorker);
}

TEST(HeldProcessTest, IsHitUntilItIsGone) {
  Child child;
  std::optional<HeldProcess> held =
      HeldProcess::Hold({child.pid(), Role::kWorker, "", {}}, kPrograms);
  ASSERT_TRUE(held.has_value());
  HeldProcess moved = *std::move(held);
  EXPECT_TRUE(moved.Send(SIGKILL));
  EXPECT_EQ(WTERMSIG(child.Reap()), SIGKILL);
  EXPECT_FALSE(moved.Send(SIGKILL));
  EXPECT_FALSE(HeldProcess::Hold({child.pid(), Role::kWorker, "", {}}, kPrograms).has_value());
}

TEST(HeldProcessTest, AnotherProcessWithThatPidIsLeftAlone) {
  const Child child;
  for (const NodeProcess& other : {NodeProcess{child.pid(), Role::kMaster, "", {}},
                                   {::getpid(), Role::kWorker, "", {}},
                                   {child.pid(), Role::kWorker, "worker-1", {}},
                                   {child.pid(), Role::kWorker, "", StartNumber(2)}}) {
    EXPECT_FALSE(HeldProcess::Hold(other, kPrograms).has_value());
  }
}

}  // namespace
}  // namespace muster::verify
