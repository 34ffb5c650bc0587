#include "host/processes/node_stacks.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "host/processes/node_launcher.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::SizeIs;
using testing::StatusIs;

/// A node that is two processes, and waits.
class NodeStacksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(launcher_.Start({.name = "worker-7",
                                 .command = {"sh", "-c", "sleep 1000 & echo ready; wait"},
                                 .environment = {},
                                 .working_directory = ""}),
                IsOk());
    // The shell has started its child when both are there.
    for (int i = 0; i < 2'000 && Pids().size() < 2; ++i) {
      launcher_.Wait(std::chrono::milliseconds(10), {});
    }
  }
  std::vector<pid_t> Pids() const {
    const auto nodes = ProcessesOfNodes(::getpid());
    const auto found = nodes.find("worker-7");
    return found == nodes.end() ? std::vector<pid_t>() : found->second;
  }

  testing::TempDir folder_;
  NodeLauncher launcher_{{.program = MUSTER_SUPERVISE_PROGRAM, .log_directory = folder_.path()}};
};

TEST_F(NodeStacksTest, TheProcessesOfANodeAndTheirStacks) {
  EXPECT_THAT(Pids(), SizeIs(2));
  EXPECT_THAT(ProcessesOfNodes(::getpid()), SizeIs(1)) << "the supervising process is no node";
  std::string text;
  EXPECT_THAT(PrintStacksOf(Pids(), std::chrono::seconds(60),
                            [&](const std::string& line) { text += line + "\n"; }),
              IsOk());
  for (const pid_t pid : Pids()) EXPECT_THAT(text, HasSubstr(std::to_string(pid)));
}

TEST_F(NodeStacksTest, WhatTakesTooLongIsSaid) {
  EXPECT_THAT(PrintStacksOf(Pids(), std::chrono::milliseconds(0), [](const std::string&) {}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("waits in the kernel")));
  EXPECT_THAT(Pids(), SizeIs(2)) << "they go on";
}

}  // namespace
}  // namespace muster
