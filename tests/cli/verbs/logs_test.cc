#include <gmock/gmock.h>

#include "tests/cli/verbs/parsed.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::optional<LogsOptions> Logs(const std::string& line) {
  return Parsed<LogsOptions>(AddLogs, line);
}

TEST(LogsVerbTest, NodesAndJobInAnyOrder) {
  for (const char* line :
       {"logs worker-0 job.yaml ps-1", "logs job.yaml worker-0 ps-1",
        "logs --node worker-0 job.yaml --node ps-1", "logs worker-0 ps-1 job.yaml"}) {
    const auto options = Logs(line);
    ASSERT_TRUE(options.has_value()) << line;
    EXPECT_THAT(options->nodes, ElementsAre("worker-0", "ps-1")) << line;
    EXPECT_EQ(options->query.target.job_file, "job.yaml") << line;
  }
  const auto all = Logs("logs job.yaml -f");
  ASSERT_TRUE(all.has_value());
  EXPECT_THAT(all->nodes, IsEmpty());
  EXPECT_TRUE(all->follow);
  EXPECT_EQ(all->lines, std::nullopt);
  EXPECT_THAT(Logs("logs wroker-1")->nodes, ElementsAre("wroker-1")) << "no file of that name";
  EXPECT_FALSE(Logs("logs a.yaml b.yaml").has_value());
}

TEST(LogsVerbTest, LinesAndSince) {
  EXPECT_EQ(Logs("logs -n 5 --since 5m")->lines, 5);
  EXPECT_EQ(Logs("logs --tail=-1")->lines, -1);
  EXPECT_EQ(Logs("logs --since 5m")->since, "5m");
  EXPECT_FALSE(Logs("logs --since yesterday").has_value());
}

}  // namespace
}  // namespace muster
