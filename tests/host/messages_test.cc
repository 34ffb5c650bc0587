#include "host/messages.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <cerrno>

namespace muster {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MessagesTest, Texts) {
  EXPECT_EQ(InSeconds(milliseconds(500)), "0.5 s");
  EXPECT_EQ(Indented("a\nb\n"), "\n    a\n    b");
  EXPECT_EQ(Indented(""), "");
  EXPECT_EQ(FirstLine("a\nb"), "a");
  EXPECT_EQ(FirstLine("a"), "a");
  EXPECT_EQ(ToString(JobState::kStopped), "stopped");
  const NodeExited killed{.node = "ps-0", .exit = {.signal = SIGKILL}, .last_words = "oh\n"};
  EXPECT_EQ(RestartNote(killed, milliseconds(0)), "ps-0 ended (SIGKILL); restarting it");
  EXPECT_EQ(RestartNote(killed, milliseconds(1'500)),
            "ps-0 ended (SIGKILL); restarting it in 1.5 s");
  EXPECT_THAT(CrashLoopReason(killed, 3),
              AllOf(HasSubstr("ps-0 ended 3 times"), HasSubstr("SIGKILL"), HasSubstr("\n    oh"),
                    HasSubstr("muster logs ps-0")));
}

TEST(MessagesTest, WhatAMachineIsShortOfComesBack) {
  for (const int error : {ENOSPC, EDQUOT, ENOMEM, EMFILE, ENFILE, EAGAIN}) {
    EXPECT_TRUE(IsShortage(absl::ErrnoToStatus(error, ""))) << error;
  }
  for (const int error : {0, EACCES, ENOENT, ENOEXEC, E2BIG, ENOTDIR, EPERM}) {
    EXPECT_FALSE(IsShortage(absl::ErrnoToStatus(error, ""))) << error;
  }
  const NodeExited lacking{
      .node = "ps-0", .exit = {.code = 126}, .last_words = "no room\n", .not_started = true};
  EXPECT_EQ(RestartNote(lacking, milliseconds(500)),
            "ps-0 could not be started (no room); trying again in 0.5 s");
}

TEST(MessagesTest, KillsForMemoryAreSaid) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  NodeExited killed{.node = "ps-0",
                    .exit = {.signal = SIGKILL},
                    .memory_kill = MemoryKill::kKernel,
                    .memory_peak_bytes = 600 * kMiB,
                    .memory_limit_bytes = 512 * kMiB};
  EXPECT_EQ(
      RestartNote(killed, milliseconds(0)),
      "ps-0 ended (SIGKILL: the kernel killed it at its memory limit of 512 MiB); restarting it");
  EXPECT_THAT(CrashLoopReason(killed, 3),
              HasSubstr("limit of 512 MiB; give it more memory, or less work"));
  killed.memory_kill = MemoryKill::kOwn;
  EXPECT_EQ(MemoryKillText(killed),
            "it was killed with 600 MiB of memory, above its limit of "
            "512 MiB");
  killed.memory_kill = MemoryKill::kMachine;
  EXPECT_THAT(MemoryKillText(killed), HasSubstr("600 MiB of memory, because the machine"));
}

TEST(MessagesTest, ExitReportCarriesTheSlot) {
  const TellMaster report = ExitReport(
      {.node = "worker-0",
       .pid = 7,
       .exit = {.signal = SIGSEGV},
       .slot = SlotRecord{.incarnation = 9, .computing = {{LeaseToken::FromValue(77), 5}}},
       .last_words = "oh\n"},
      NodeRole::kWorker, 3);
  EXPECT_TRUE(report.exited);
  EXPECT_EQ(report.pid, 7u);
  EXPECT_EQ(report.computing_token, 77u);
  EXPECT_EQ(report.minibatches_started, 5u);
  EXPECT_EQ(report.incarnation, 9u);
  EXPECT_EQ(report.text, "oh\n");
  EXPECT_EQ(report.start, StartNumber(3));
}

TEST(MessagesTest, ACrashAmongSeveralLoopsIsChargedToNoShard) {
  NodeExited exited{.node = "worker-0",
                    .exit = {.signal = SIGSEGV},
                    .slot = SlotRecord{.incarnation = 9,
                                       .computing = {{LeaseToken::FromValue(77), 5},
                                                     {LeaseToken::FromValue(78), 6}}},
                    .last_words = "oh\n"};
  TellMaster report = ExitReport(exited, NodeRole::kWorker, 3);
  EXPECT_EQ(report.computing_token, 0u);
  EXPECT_EQ(report.minibatches_started, 0u);
  EXPECT_EQ(report.incarnation, 9u) << "its leases end";
  EXPECT_EQ(report.text,
            "its loops were in 2 shards. It is not known which shard caused the exit, so no "
            "failure is counted; "
            "oh\n");
  exited.exit = {.signal = SIGKILL};
  EXPECT_EQ(ExitReport(exited, NodeRole::kWorker, 3).text, "oh\n") << "no shard's doing anyway";
}

TEST(MessagesTest, ExitReportSaysThatItWasForItsMemory) {
  NodeExited killed{.node = "ps-0",
                    .exit = {.signal = SIGKILL},
                    .memory_kill = MemoryKill::kKernel,
                    .memory_limit_bytes = uint64_t{512} << 20};
  EXPECT_EQ(ExitReport(killed, NodeRole::kServer, 1).text,
            "the kernel killed it at its memory limit of 512 MiB");
  killed.last_words = "oh\n";
  EXPECT_EQ(ExitReport(killed, NodeRole::kServer, 1).text,
            "the kernel killed it at its memory limit of 512 MiB; oh\n");
}

TEST(MessagesTest, AReplayIsNoProgress) {
  const MasterView before{.done_seq = 5, .records_done = 100};
  EXPECT_TRUE(HasProgressed(before, {.done_seq = 6, .records_done = 90}));
  EXPECT_TRUE(HasProgressed(before, {.done_seq = 5, .records_done = 101}));
  EXPECT_FALSE(HasProgressed(before, {.done_seq = 5, .records_done = 90}));
  EXPECT_TRUE(HasProgressed(before, {.done_seq = 5, .records_done = 100, .failed_shards = 1}));
}

}  // namespace
}  // namespace muster
