#include "scaler/core/messages.h"

#include <gmock/gmock.h>
#include <signal.h>

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
  EXPECT_EQ(ToString(JobPhase::kStopped), "stopped");
  EXPECT_EQ(ToString(NodeRole::kScaler), "scaler");
  const NodeExited killed{.node = "ps-0", .exit = {.signal = SIGKILL}, .last_words = "oh\n"};
  EXPECT_EQ(RelaunchNote(killed, milliseconds(0)), "ps-0 ended (SIGKILL); starting it again");
  EXPECT_EQ(RelaunchNote(killed, milliseconds(1'500)),
            "ps-0 ended (SIGKILL); starting it again in 1.5 s");
  EXPECT_THAT(CrashLoopReason(killed, 3),
              AllOf(HasSubstr("ps-0 ended 3 times"), HasSubstr("SIGKILL"), HasSubstr("\n    oh"),
                    HasSubstr("muster logs ps-0")));
}

TEST(MessagesTest, ExitReportCarriesTheSlot) {
  const TellMaster report =
      ExitReport({.node = "worker-0",
                  .pid = 7,
                  .exit = {.signal = SIGSEGV},
                  .slot = SlotRecord{.incarnation = 9,
                                     .computing_token = LeaseToken::FromValue(77),
                                     .minibatches_started = 5},
                  .last_words = "oh\n"},
                 NodeRole::kWorker, 3);
  EXPECT_TRUE(report.exited);
  EXPECT_EQ(report.pid, 7u);
  EXPECT_EQ(report.computing_token, 77u);
  EXPECT_EQ(report.minibatches_started, 5u);
  EXPECT_EQ(report.incarnation, 9u);
  EXPECT_EQ(report.text, "oh\n");
  EXPECT_EQ(report.restarts, 2u);
}

TEST(MessagesTest, AReplayIsNoProgress) {
  const MasterView before{.done_seq = 5, .records_done = 100};
  EXPECT_TRUE(HasProgressed(before, {.done_seq = 6, .records_done = 90}));
  EXPECT_TRUE(HasProgressed(before, {.done_seq = 5, .records_done = 101}));
  EXPECT_FALSE(HasProgressed(before, {.done_seq = 5, .records_done = 90}));
}

}  // namespace
}  // namespace muster
