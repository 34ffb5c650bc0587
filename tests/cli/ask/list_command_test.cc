#include "cli/ask/list_command.h"

#include <gmock/gmock.h>

namespace muster {
namespace {

using ::testing::HasSubstr;

ListedJob Training() {
  ListedJob job{.state_directory = "/data/state", .pid = 4711, .status = JobStatus()};
  job.status->name = "clicks";
  job.status->state = JobState::kRunning;
  job.status->progress.records_expected = 1'000'000;
  job.status->progress.records_committed = 12'345;
  const auto add = [&job](const char* name, const char* role, NodeState state) {
    job.status->nodes.push_back({.name = name, .role = role, .state = state});
  };
  add("master", "master", NodeState::kRunning);
  add("worker-0", "worker", NodeState::kRunning);
  add("worker-1", "worker", NodeState::kRunning);
  add("worker-2", "worker", NodeState::kExited);
  add("ps-0", "ps", NodeState::kRunning);
  return job;
}

ListedJob Silent() {
  return {.state_directory = "/data/other", .pid = 0, .status = {}};
}

TEST(ListCommandTest, AJobIsALine) {
  EXPECT_EQ(ListText({Silent(), Training()}),
            "NAME    STATE      COMMITTED            WORKERS  SERVERS  PID   STATE DIRECTORY\n"
            "-       no answer  -                    -        -        -     /data/other\n"
            "clicks  running    12,345 of 1,000,000  2        1        4711  /data/state\n");
}

TEST(ListCommandTest, WhereNoJobRunsItSaysSo) {
  EXPECT_THAT(ListText({}), HasSubstr("no job runs on this machine"));
  EXPECT_EQ(ListToJson({}).dump(), R"({"jobs":[]})");
}

TEST(ListCommandTest, WhatIsNotKnownIsNullInJson) {
  const nlohmann::json jobs = ListToJson({Silent(), Training()})["jobs"];
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0]["state_directory"], "/data/other");
  for (const char* unknown : {"name", "state", "pid", "workers_running", "servers_running",
                              "records_committed", "records_expected"}) {
    EXPECT_TRUE(jobs[0].at(unknown).is_null()) << unknown;
  }
  EXPECT_EQ(jobs[1], (nlohmann::json{{"name", "clicks"},
                                     {"state", "running"},
                                     {"pid", 4711},
                                     {"state_directory", "/data/state"},
                                     {"workers_running", 2},
                                     {"servers_running", 1},
                                     {"records_committed", 12'345},
                                     {"records_expected", 1'000'000}}));
}

}  // namespace
}  // namespace muster
