#include "master/core/workers/worker_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/master/core/parts_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::PartsFixture;
using Call = WorkerSessions::Call;

const WorkerKey kFirst{"worker-1", 11}, kSecond{"worker-1", 12};

class WorkerSessionsTest : public ::testing::Test, protected PartsFixture {
 protected:
  void Hello(const WorkerKey& worker, uint64_t start = 0) {
    EXPECT_THAT(sessions().Begin(worker, StartNumber(start), At()), testing::IsOk());
  }
  absl::StatusOr<Call> Hear(const WorkerKey& worker, uint64_t sequence) {
    WorkerExchangeRequest request;
    request.worker = worker.name;
    request.incarnation = worker.incarnation;
    request.sequence = sequence;
    request.times.total_us = sequence;
    return sessions().Hear(request, At());
  }
  std::vector<WorkerKey> ProcessesOf(uint64_t incarnation, uint64_t start) {
    NodeReport report;
    report.node = kFirst.name;
    report.incarnation = incarnation;
    report.start = StartNumber(start);
    return sessions().ProcessesOf(report, books().nodes.Find(kFirst.name)->record);
  }
};

TEST_F(WorkerSessionsTest, AnOvertakenCallIsKnownAndItsFiguresAreNotTaken) {
  Start();
  Hello(kFirst);
  MUSTER_ASSERT_OK_AND_ASSIGN(const Call newer, Hear(kFirst, 2));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Call overtaken, Hear(kFirst, 1));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Call again, Hear(kFirst, 2));
  EXPECT_EQ(newer, Call::kNewest);
  EXPECT_EQ(overtaken, Call::kOvertaken);
  EXPECT_EQ(again, Call::kOvertaken);
  EXPECT_EQ(books().nodes.Find(kFirst.name)->times.total_us, 2u);
}

TEST_F(WorkerSessionsTest, AServerThatWorkersCannotReachIsToldOnceAndUntilTheyCan) {
  const WorkerKey kOther{"worker-2", 13};
  Start();
  Hello(kOther);
  Hello(kFirst);
  Node* const server = books().nodes.FindOrAdd("ps-0", NodeRole::kServer, leasing().table());
  server->record.incarnation = 5;
  const auto hear = [&](const WorkerKey& worker, uint64_t sequence, const std::string& why) {
    WorkerExchangeRequest request;
    request.worker = worker.name;
    request.incarnation = worker.incarnation;
    request.sequence = sequence;
    if (!why.empty()) request.unreachable = {{ServerId(0), ServerIncarnation(5), why}};
    EXPECT_THAT(sessions().Hear(request, At()), testing::IsOk());
  };
  hear(kOther, 1, "10.0.0.9:1: refused");
  hear(kFirst, 1, "10.0.0.9:1: no route");
  EXPECT_EQ(Events("server-unreachable").size(), 1u);
  EXPECT_EQ(server->unreachable_from.size(), 2u);
  hear(kOther, 2, "");
  EXPECT_EQ(server->unreachable_from.size(), 1u);
  EXPECT_THAT(Events("server-reachable"), IsEmpty());
  hear(kFirst, 2, "");
  EXPECT_THAT(server->unreachable_from, IsEmpty());
  EXPECT_EQ(Events("server-reachable").size(), 1u);
}

TEST_F(WorkerSessionsTest, OutputsThatCannotBeWrittenAreToldOnceAndUntilTheyCan) {
  Start();
  Hello(kFirst);
  Node* const worker = books().nodes.Find(kFirst.name);
  uint64_t sequence = 0;
  const auto hear = [&](const std::string& why) {
    WorkerExchangeRequest request;
    request.worker = kFirst.name;
    request.incarnation = kFirst.incarnation;
    request.sequence = ++sequence;
    request.unwritten = why;
    EXPECT_THAT(sessions().Hear(request, At()), testing::IsOk());
    return worker->outputs.active();
  };
  EXPECT_FALSE(hear(""));
  EXPECT_TRUE(hear("disk full"));
  EXPECT_TRUE(hear("still full"));
  ASSERT_EQ(Events("outputs-error").size(), 1u);
  EXPECT_THAT(Events("outputs-error")[0], ::testing::HasSubstr("disk full; its shards"));
  EXPECT_FALSE(hear(""));
  EXPECT_EQ(Events("outputs-work-again").size(), 1u);
  EXPECT_TRUE(hear("disk full"));
  books().nodes.Learn(worker, NodeNews::kToldExited);
  EXPECT_FALSE(worker->outputs.active()) << "the process has ended";
  EXPECT_TRUE(hear("disk full"));
  Hello(kSecond);
  EXPECT_FALSE(worker->outputs.active()) << "it is another process";
}

TEST_F(WorkerSessionsTest, WhatAFormerProcessOfAServerAdvertisedIsNoTrouble) {
  Start();
  Hello(kFirst);
  Node* const server = books().nodes.FindOrAdd("ps-0", NodeRole::kServer, leasing().table());
  server->record.incarnation = 6;
  WorkerExchangeRequest request;
  request.worker = kFirst.name;
  request.incarnation = kFirst.incarnation;
  request.sequence = 1;
  request.unreachable = {{ServerId(0), ServerIncarnation(5), "refused"},
                         {ServerId(9), ServerIncarnation(5), "refused"}};
  EXPECT_THAT(sessions().Hear(request, At()), testing::IsOk());
  EXPECT_THAT(server->unreachable_from, IsEmpty());
}

TEST_F(WorkerSessionsTest, AReportIsOfTheProcessThatItNamesElseOfThoseUpToItsStart) {
  Start();
  Hello(kFirst, 1);
  Hello(kSecond, 2);
  EXPECT_THAT(ProcessesOf(12, 1), ElementsAre(kSecond)) << "its incarnation says it all";
  EXPECT_THAT(ProcessesOf(0, 1), ElementsAre(kFirst));
  EXPECT_THAT(ProcessesOf(0, 2), ElementsAre(kFirst, kSecond));
}

TEST_F(WorkerSessionsTest, OfAProcessThatSaysNoStartTheReportIsIfItWasToldOf) {
  Start();
  Hello(kFirst);
  EXPECT_THAT(ProcessesOf(0, 3), IsEmpty());
  books().nodes.Find(kFirst.name)->record.told_start = StartNumber(3);
  EXPECT_THAT(ProcessesOf(0, 3), ElementsAre(kFirst));
}

TEST_F(WorkerSessionsTest, WhoIsSilentForLongIsForgottenAndMayComeAgain) {
  Start();
  Hello(kFirst, 1);
  MUSTER_ASSERT_OK_AND_ASSIGN(const Call first, Hear(kFirst, 9));
  EXPECT_EQ(first, Call::kNewest);
  Pass(options.leases.duration);
  sessions().Tick(At());
  EXPECT_THAT(ProcessesOf(0, 1), ElementsAre(kFirst)) << "silent, but known";
  Pass(9 * options.leases.duration);
  sessions().Tick(At());
  EXPECT_THAT(ProcessesOf(0, 1), IsEmpty());
  MUSTER_ASSERT_OK_AND_ASSIGN(const Call restarted, Hear(kFirst, 1));
  EXPECT_EQ(restarted, Call::kNewest) << "what it said before is forgotten";
}

TEST_F(WorkerSessionsTest, WhatEndsBySilenceIsCountedForItsNode) {
  options.datasets[0].shards = 20;
  Start();
  Hello(kFirst);
  WorkerExchangeRequest request;
  request.want = 2;
  WorkerExchangeReply reply;
  leasing().Grant(request, kFirst, {.shards = 2}, At(), &reply);
  Pass(options.leases.duration);
  sessions().Tick(At());
  EXPECT_EQ(leasing().table().size(), 0u);
  EXPECT_EQ(books().totals.expired_leases, 2u);
  ASSERT_THAT(Events("node-lost"), ElementsAre(::testing::HasSubstr("2 leases expired")));
}

}  // namespace
}  // namespace muster
