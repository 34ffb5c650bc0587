#include "cli/node/node_exit.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace muster {
namespace {

CgroupUsage Group(uint64_t kills, bool limit_reached) {
  CgroupUsage usage;
  usage.memory_peak_bytes = 900;
  usage.memory_limit_bytes = 1000;
  usage.oom_kills = kills;
  usage.limit_reached = limit_reached;
  return usage;
}

ContainerEnd Ended(int signal, int code) {
  return {.node = "worker-1",
          .exited = {.kind = SuperviseReport::kExited, .pid = 7, .signal = signal, .code = code},
          .slot = std::nullopt,
          .last_words = "bye\n",
          .before = Group(2, false),
          .after = Group(2, false)};
}

TEST(NodeExitTest, AnExitHasItsFacts) {
  ContainerEnd end = Ended(SIGSEGV, 0);
  end.slot = SlotRecord{.incarnation = 9};
  const NodeExited exited = ExitOf(end);
  EXPECT_EQ(exited.node, "worker-1");
  EXPECT_EQ(exited.pid, 7u);
  EXPECT_EQ(exited.exit, (ExitStatus{.signal = SIGSEGV}));
  EXPECT_EQ(exited.slot->incarnation, 9u);
  EXPECT_EQ(exited.last_words, "bye\n");
  EXPECT_EQ(exited.memory_peak_bytes, 900u);
  EXPECT_EQ(exited.memory_limit_bytes, 1000u);
  EXPECT_FALSE(exited.not_started);
}

TEST(NodeExitTest, OnlyAKillInThisLifeIsTheKernels) {
  ContainerEnd end = Ended(SIGKILL, 0);
  EXPECT_EQ(ExitOf(end).memory_kill, MemoryKill::kNone) << "the kills came before";
  end.after = Group(3, true);
  EXPECT_EQ(ExitOf(end).memory_kill, MemoryKill::kKernel);
  end.after = Group(3, false);
  EXPECT_EQ(ExitOf(end).memory_kill, MemoryKill::kMachine);
  end.before = std::nullopt;
  end.after = Group(1, true);
  EXPECT_EQ(ExitOf(end).memory_kill, MemoryKill::kKernel) << "the group began with the container";
  end.exited.signal = SIGTERM;
  EXPECT_EQ(ExitOf(end).memory_kill, MemoryKill::kNone);
}

TEST(NodeExitTest, AShellWhoseCommandWasKilledWasKilled) {
  ContainerEnd end = Ended(0, 137);
  EXPECT_EQ(ExitOf(end).exit, (ExitStatus{.code = 137}));
  end.after = Group(3, true);
  EXPECT_EQ(ExitOf(end).exit, (ExitStatus{.signal = SIGKILL}));
}

TEST(NodeExitTest, WithoutAGroupNothingIsKnownOfMemory) {
  ContainerEnd end = Ended(SIGKILL, 0);
  end.after = std::nullopt;
  const NodeExited exited = ExitOf(end);
  EXPECT_EQ(exited.memory_kill, MemoryKill::kNone);
  EXPECT_EQ(exited.memory_peak_bytes, 0u);
}

TEST(NodeExitTest, AShortageIsNoFailureOfTheNode) {
  ContainerEnd end = Ended(0, 126);
  end.exited.shortage = 1;
  EXPECT_TRUE(ExitOf(end).not_started);
  const NodeExited wrong = NotRun("ps-0", 2, "no such file");
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_EQ(wrong.last_words, "no such file\n");
  EXPECT_FALSE(wrong.not_started);
}

}  // namespace
}  // namespace muster
