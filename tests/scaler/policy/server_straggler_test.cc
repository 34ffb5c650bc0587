#include "scaler/policy/server_straggler.h"

#include <gmock/gmock.h>

#include "base/random.h"
#include "tests/scaler/model/fake_job.h"

namespace muster::scaler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ServerStragglerTest : public ::testing::Test {
 protected:
  void Servers(uint32_t count) { job_.Add(NodeRole::kServer, count, {}, {.cpus = 1}); }
  std::vector<Proposal> Run(int seconds) { return job_.Run(&policy_, seconds); }
  std::vector<Proposal> Act(int seconds) {
    for (int second = 0; second < seconds; ++second) {
      std::vector<Proposal> proposals = Run(1);
      if (proposals.empty()) continue;
      job_.CarryOut(proposals[0]);
      return proposals;
    }
    return {};
  }
  FakeJob job_;
  ServerStragglerPolicy policy_;
};

TEST_F(ServerStragglerTest, SlowServiceIsSeen) {
  for (uint32_t count : {2, 4}) {
    job_ = FakeJob();
    policy_ = ServerStragglerPolicy();
    Servers(count);
    EXPECT_THAT(Run(60), IsEmpty());
    job_.loads["ps-1"].service_us = 800;
    const std::vector<Proposal> proposals = Act(30);
    ASSERT_THAT(Actions(proposals), ElementsAre(Action::kRestart)) << count;
    EXPECT_EQ(proposals[0].target, "ps-1");
    EXPECT_THAT(proposals[0].because, HasSubstr("service time per request"));
  }
}

TEST_F(ServerStragglerTest, SlowWithIdleLanesAndLowCpuIsSeenByItsWorkers) {
  Servers(3);
  Run(60);
  job_.loads["ps-2"] = {.requests = 150, .service_us = 100, .round_trip_us = 40'000, .cpus = 0.05};
  const std::vector<Proposal> proposals = Act(30);
  ASSERT_THAT(Actions(proposals), ElementsAre(Action::kRestart));
  EXPECT_EQ(proposals[0].target, "ps-2");
  EXPECT_THAT(proposals[0].because, HasSubstr("round trip per request as workers see it"));
  EXPECT_LT(Figure(proposals[0], "CPU"), 0.3);
  EXPECT_GT(Figure(proposals[0], "round trip per request as workers see it"), 30'000);
  EXPECT_NEAR(Figure(proposals[0], "the same of the median of its 2 peers"), 500, 1);
}

TEST_F(ServerStragglerTest, ThrottledGetsMoreCpuFirst) {
  Servers(2);
  Run(60);
  job_.loads["ps-0"] = {
      .requests = 60, .service_us = 300, .round_trip_us = 60'000, .cpus = 0.95, .throttled = 0.7};
  const std::vector<Proposal> first = Act(30);
  ASSERT_THAT(Actions(first), ElementsAre(Action::kResize));
  EXPECT_EQ(std::get<Resources>(first[0].after).cpus, 2);
  EXPECT_THAT(Actions(Act(40)), ElementsAre(Action::kRestart));
  EXPECT_THAT(Act(300), IsEmpty()) << "one restart of a server is enough";
}

TEST_F(ServerStragglerTest, MoreRequestsAreNotSlowness) {
  Servers(3);
  job_.loads["ps-0"].requests = 2'000;
  job_.loads["ps-0"].cpus = 0.95;
  EXPECT_THAT(Run(300), IsEmpty());
}

TEST_F(ServerStragglerTest, LargerRequestsAreNotSlowness) {
  for (uint32_t count : {2, 3}) {
    job_ = FakeJob();
    policy_ = ServerStragglerPolicy();
    Servers(count);
    EXPECT_THAT(Run(60), IsEmpty());
    // Ten times as much in each, which takes ten times as long to serve.
    job_.loads["ps-0"] = {.service_us = 1'000, .round_trip_us = 3'000, .bytes_each = 40'000};
    EXPECT_THAT(Run(300), IsEmpty()) << count;
  }
}

TEST_F(ServerStragglerTest, NorAreSmallerOnesThatTakeAsLong) {
  Servers(3);
  job_.loads["ps-0"].bytes_each = 400;
  EXPECT_THAT(Run(300), IsEmpty());
}

TEST_F(ServerStragglerTest, SlowForTheSizeOfItsRequestsIsSeen) {
  Servers(3);
  job_.loads["ps-0"] = {.service_us = 1'000, .bytes_each = 12'000};
  const std::vector<Proposal> proposals = Act(60);
  ASSERT_THAT(Actions(proposals), ElementsAre(Action::kRestart));
  EXPECT_EQ(proposals[0].target, "ps-0");
  EXPECT_NEAR(Figure(proposals[0], "ratio"), 10.0 / 3, 0.1);
  EXPECT_NEAR(Figure(proposals[0], "bytes per request"), 12'000, 1);
  EXPECT_THAT(proposals[0].because, HasSubstr("peers, size for size, over"));
}

TEST_F(ServerStragglerTest, AllSlowAlikeAndWhatHoldsNobodyUpIsLeftAlone) {
  Servers(3);
  Run(60);
  // Ten times a microsecond is nothing to restart for.
  for (auto& [name, load] : job_.loads) load.service_us = 2;
  job_.loads["ps-1"].service_us = 20;
  EXPECT_THAT(Run(120), IsEmpty());
  for (auto& [name, load] : job_.loads) load.service_us = 110;
  job_.loads["ps-1"].service_us = 300;
  EXPECT_THAT(Run(120), IsEmpty()) << "less than 0.2 ms more";
  for (auto& [name, load] : job_.loads) load.round_trip_us = 50'000;
  EXPECT_THAT(Run(120), IsEmpty());
}

TEST_F(ServerStragglerTest, SnapshotsAreNoSlowness) {
  Servers(2);
  Rng rng(2);
  EXPECT_THAT(job_.Run(&policy_, 600,
                       [&](int second) {
                         int index = 0;
                         for (auto& [name, load] : job_.loads) {
                           const bool snapshot = (second + 3 * index++) % 6 == 0;
                           load.service_us = (snapshot ? 600 : 100) * (0.7 + 0.6 * rng.Uniform());
                           load.round_trip_us = (snapshot ? 3'000 : 500) * (0.5 + rng.Uniform());
                         }
                       }),
              IsEmpty());
}

TEST_F(ServerStragglerTest, AStoppedWorkersClockIsNoEvidenceAgainstALoneServer) {
  struct Row {
    const char* name;
    uint32_t workers;
    Load server;
  };
  // The answers lie there until the worker runs again, so its round trips are long.
  for (const Row& row : {
           Row{"one of two workers is stopped 400 of every 440 ms",
               2,
               {.requests = 150, .round_trip_us = 40'000, .cpus = 0.05}},
           Row{"its only worker is", 1, {.requests = 30, .round_trip_us = 400'000, .cpus = 0.03}},
           Row{"its worker has 3 % of a CPU", 1, {.requests = 20, .round_trip_us = 30'000}},
           Row{"steps of a minute", 1, {.requests = 1, .round_trip_us = 6e7, .cpus = 0.01}},
       }) {
    SCOPED_TRACE(row.name);
    job_ = FakeJob();
    policy_ = ServerStragglerPolicy();
    Servers(1);
    job_.Add(NodeRole::kWorker, row.workers);
    EXPECT_THAT(Run(60), IsEmpty());
    job_.loads["ps-0"] = row.server;
    EXPECT_THAT(Run(300), IsEmpty());
  }
}

TEST_F(ServerStragglerTest, ALoneServerMustBeMuchSlowerByItsOwnClock) {
  Servers(1);
  EXPECT_THAT(Run(60), IsEmpty());
  job_.loads["ps-0"].service_us = 500;
  EXPECT_THAT(Run(120), IsEmpty()) << "five times its past: the work may have become heavier";
  job_.loads["ps-0"].service_us = 2'500;
  const std::vector<Proposal> proposals = Act(30);
  ASSERT_THAT(Actions(proposals), ElementsAre(Action::kRestart));
  EXPECT_THAT(proposals[0].because, HasSubstr("service time per request"));
}

TEST_F(ServerStragglerTest, ReplayAndRestoreAreNotCompared) {
  Servers(2);
  Run(60);
  job_.view.activity = Activity::kReplaying;
  job_.loads["ps-1"].service_us = 2'000;
  EXPECT_THAT(Run(120), IsEmpty());
  job_.view.activity = Activity::kTraining;
  job_.loads["ps-1"].service_us = 100;
  EXPECT_THAT(Run(60), IsEmpty());
}

}  // namespace
}  // namespace muster::scaler
