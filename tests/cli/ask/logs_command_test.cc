#include "cli/ask/logs_command.h"

#include <gmock/gmock.h>

#include "base/clock.h"
#include "base/file.h"
#include "host/processes/log_file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;

class LogsCommandTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_THAT(state_.Create(), IsOk()); }
  void Write(const std::string& node, const std::string& text) {
    ASSERT_THAT(WriteFileAtomically(state_.LogOf(node), text), IsOk());
  }
  int Logs(LogsOptions options, OutputFormat output = OutputFormat::kText) {
    options.query = {.target = {.state_directory = folder_.path()}, .output = output};
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = LogsCommand(options);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  testing::TempDir folder_;
  const StateDirectory state_{folder_.path()};
  std::string out_;
  std::string err_;
};

TEST_F(LogsCommandTest, ALogAsJsonIsAnObjectALine) {
  Write("ps-0", "one \"quoted\"\ntwo \xff\nthree");
  EXPECT_EQ(Logs({.nodes = {"ps-0"}}, OutputFormat::kJson), kExitSucceeded);
  EXPECT_EQ(out_,
            "{\"line\":\"one \\\"quoted\\\"\",\"node\":\"ps-0\"}\n"
            "{\"line\":\"two \xEF\xBF\xBD\",\"node\":\"ps-0\"}\n"
            "{\"line\":\"three\",\"node\":\"ps-0\"}\n");
}

TEST_F(LogsCommandTest, LinesOfSeveralNodesBeginWithTheirNode) {
  Write("ps-0", "a\nb\n");
  Write("worker-1", "c\nd");
  Write("worker-2", "e\n");
  EXPECT_EQ(Logs({.nodes = {"worker-1", "ps-0"}, .lines = 1}), kExitSucceeded);
  EXPECT_EQ(out_, "[ps-0] b\n[worker-1] d\n");
  EXPECT_EQ(Logs({.nodes = {"worker-1"}}), kExitSucceeded);
  EXPECT_EQ(out_, "c\nd") << "one node: as it is";
  EXPECT_EQ(Logs({.lines = -1, .follow = true}), kExitSucceeded) << "ends, as no job runs";
  EXPECT_EQ(out_, "[ps-0] a\n[ps-0] b\n[worker-1] c\n[worker-2] e\n[worker-1] d\n");
}

TEST_F(LogsCommandTest, ANodeWithoutALogIsAUsageError) {
  EXPECT_EQ(Logs({}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("no node of the job has a log yet"));
  Write("ps-0", "a\n");
  for (const char* node : {"ps-7", "../run/lock"}) {
    EXPECT_EQ(Logs({.nodes = {"ps-0", node}}), kExitUsage);
    EXPECT_THAT(err_, HasSubstr("nodes with a log: ps-0"));
    EXPECT_EQ(out_, "");
  }
}

TEST_F(LogsCommandTest, SinceATime) {
  Write("ps-0", "without times\n");
  MUSTER_ASSERT_OK_AND_ASSIGN(RotatingLog log, RotatingLog::Open(state_.LogOf("ps-1"), 1'000));
  log.Write("long ago\n", std::chrono::seconds(1));
  log.Write("now\n", SystemClock().Wall());
  EXPECT_EQ(Logs({.nodes = {"ps-1"}, .since = "1h"}), kExitSucceeded);
  EXPECT_EQ(out_, "now\n");
  EXPECT_EQ(Logs({.since = "1h"}), kExitSucceeded);
  EXPECT_EQ(out_, "[ps-0] without times\n[ps-1] now\n");
  EXPECT_THAT(err_, HasSubstr("all of it is shown"));
  EXPECT_EQ(Logs({.since = "soon"}), kExitUsage);
}

TEST(LinesOfEachTest, OfOneOfSeveralAndSince) {
  EXPECT_EQ(LinesOfEach({.nodes = {"ps-0"}}), 100u);
  EXPECT_EQ(LinesOfEach({.nodes = {"ps-0", "ps-1"}}), 10u);
  EXPECT_EQ(LinesOfEach({}), 10u);
  EXPECT_EQ(LinesOfEach({.since = "5m"}), UINT32_MAX);
  EXPECT_EQ(LinesOfEach({.lines = 3, .since = "5m"}), 3u);
  EXPECT_EQ(LinesOfEach({.lines = -1}), UINT32_MAX);
}

}  // namespace
}  // namespace muster
