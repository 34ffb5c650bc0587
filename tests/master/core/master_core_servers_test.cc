#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using testing::CoreFixture;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;
using testing::StatusIs;

class ServersTest : public ::testing::Test, protected CoreFixture {};

TEST_F(ServersTest, TheSameNonceGetsTheSameIncarnationAlsoAfterARestart) {
  Start();
  Register(5);
  const ServerIncarnation first = server;
  Register(5);
  EXPECT_EQ(server, first);
  Restart();
  Register(5);
  EXPECT_EQ(server, first);
  Register(6);
  EXPECT_GT(server, first);
  EXPECT_THAT(core->RegisterServer({"ps-0", 5, {}}, At()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("taken its place")));
  EXPECT_THAT(core->RegisterServer({"ps-1", 5, {}}, At()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ps-0 to ps-0")));
}

TEST_F(ServersTest, ALateRegisterOfAnEarlierStartTakesNobodysPlace) {
  Start();
  const auto register_as = [this](uint64_t nonce, uint64_t start) {
    return core->RegisterServer({"ps-0", nonce, {{"unix:/x"}}, StartNumber(start)}, At());
  };
  const absl::StatusOr<RegisterServerReply> newest = register_as(6, 2);
  ASSERT_THAT(newest.status(), testing::IsOk());
  Sync();
  const auto late = [&] { return register_as(5, 1).status(); };
  EXPECT_THAT(late(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("knows start 2 of this node already")));
  Restart();
  EXPECT_THAT(late(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("start 2")))
      << "the journal knows it";
  EXPECT_EQ(register_as(6, 2)->incarnation, newest->incarnation);
  EXPECT_GT(register_as(7, 0)->incarnation, newest->incarnation) << "by hand: the newest counts";
  EXPECT_THAT(late(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("start 2")))
      << "and what was known stays";
}

TEST_F(ServersTest, OwnIsRepeatedUntilTheHeartbeatShowsIt) {
  Start();
  Register(5);
  ServerExchangeRequest empty = ServerRequest();
  empty.owned.clear();
  EXPECT_THAT(ExchangeServer(empty).owns, SizeIs(2));
  empty.sequence = ++server_sequence;
  const ServerExchangeReply again = ExchangeServer(empty);
  ASSERT_THAT(again.owns, SizeIs(2));
  EXPECT_TRUE(again.owns[0].restored);
  EXPECT_THAT(ExchangeServer(ServerRequest()).owns, IsEmpty());
  EXPECT_EQ(core->partitions().LoadOf(ServerId(0)).serving, 2u);
}

TEST_F(ServersTest, CommitsWhatEverySnapshotHolds) {
  options.snapshot_interval = seconds(10);
  Start();
  Register(5);
  EXPECT_EQ(Snapshot(), 0u) << "nothing is DONE";
  Done(Want(2).grants);
  EXPECT_EQ(Snapshot(), 0u) << "not due";
  Advance(seconds(10));
  EXPECT_EQ(Snapshot(), 2u);
  EXPECT_EQ(core->ledger().commit_seq(), DoneSeq(2));
  EXPECT_EQ(core->ledger().RecordsCommitted(DatasetId(0), EpochIndex(0)), 20u);
  EXPECT_TRUE(journal.state().done.empty());
  Done(Want(2).grants);
  EXPECT_EQ(Snapshot(), 2u) << "nothing is left to lease: at once";
  EXPECT_EQ(core->state(), JobState::kSucceeded);
  EXPECT_THAT(core->TakeUnusedFiles(), SizeIs(2)) << "the files of the older snapshots";
}

TEST_F(ServersTest, WhatIsTrainedIsSnapshottedThoughNothingIsDone) {
  options.snapshot_interval = seconds(10);
  Start();
  Register(1);
  ExchangeServer(ServerRequest());
  const auto grants = Want(1).grants;
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(Snapshot(), 0u) << "not due";
  now += seconds(10);
  EXPECT_EQ(Snapshot(), 2u) << "the shard may take longer than the server lives";
  EXPECT_EQ(Snapshot(), 0u);
  now += seconds(10);
  EXPECT_EQ(Snapshot(), 2u);
  WorkerExchangeRequest request = Request();
  request.returned.push_back({grants[0].shard, grants[0].token, false});
  Exchange(request);
  now += seconds(10);
  EXPECT_EQ(Snapshot(), 0u) << "no worker trains";
}

TEST_F(ServersTest, AcceptsOnlyWhatTheRulesAllow) {
  options.snapshot_interval = seconds(0);
  Start();
  Register(5);
  Done(Want(1).grants);
  ExchangeServer(ServerRequest());
  const ServerExchangeReply asked = ExchangeServer(ServerRequest());
  ASSERT_THAT(asked.snapshots, SizeIs(2)) << "commands are repeated until they took effect";
  const SnapshotCommand& command = asked.snapshots[0];
  const SnapshotReport good{
      command.partition, command.epoch, {command.number, command.cut, {{"a", 1, command.number}}}};
  std::vector<SnapshotReport> bad(5, good);
  bad[0].epoch = command.epoch.Next();
  bad[1].manifest.number = SnapshotNumber(MasterIncarnation(9), 1);
  bad[2].manifest.cut = DoneSeq(2);
  bad[3].partition = PartitionId(77);
  bad[4].manifest.number = SnapshotNumber(core->incarnation(), 1000);
  for (const SnapshotReport& report : bad) {
    ServerExchangeRequest request = ServerRequest();
    request.snapshots = {report};
    ExchangeServer(request);
    EXPECT_EQ(core->totals().snapshots_accepted, 0u);
  }
  ServerExchangeRequest request = ServerRequest();
  request.snapshots = {good, good};
  ExchangeServer(request);
  EXPECT_EQ(core->totals().snapshots_accepted, 1u);
  ServerExchangeRequest late = ServerRequest();
  late.owned[0].accepted = SnapshotNumber();
  EXPECT_THAT(ExchangeServer(late).accepted, SizeIs(1));
}

TEST_F(ServersTest, AChainGoesOnFromTheWholeManifestOrBeginsAnew) {
  options.snapshot_interval = seconds(0);
  options.partitions = 1;
  Start();
  Register(5);
  // Takes the next snapshot; a file without a number is the one that it writes.
  std::vector<SnapshotFile> written;
  const auto report = [&](std::vector<SnapshotFile> files) {
    Done(Want(1).grants);
    ServerExchangeRequest request = ServerRequest();
    const ServerExchangeReply asked = ExchangeServer(request);
    request = ServerRequest();
    for (const SnapshotCommand& command : asked.snapshots) {
      for (SnapshotFile& file : files) {
        if (file.number == SnapshotNumber()) file.number = command.number;
      }
      request.snapshots.push_back(
          {command.partition, command.epoch, {command.number, command.cut, files}});
    }
    written = files;
    const uint64_t before = core->totals().snapshots_accepted;
    ExchangeServer(request);
    return core->totals().snapshots_accepted > before;
  };
  EXPECT_TRUE(report({{"base", 1}}));
  const SnapshotFile base = written.back();
  EXPECT_TRUE(report({base})) << "nothing was changed since";
  EXPECT_TRUE(report({base, {"delta-1", 1}}));
  const SnapshotFile delta = written.back();
  EXPECT_FALSE(report({base, {"delta-2", 1}})) << "the rows of delta-1 would be lost";
  EXPECT_FALSE(report({base})) << "the rows of delta-1 would be lost";
  EXPECT_FALSE(report({base, delta, {"delta-3", 1}, {"delta-4", 1}})) << "one snapshot, one file";
  EXPECT_TRUE(report({{"base-2", 1}}));
  EXPECT_FALSE(report({base, {"delta-3", 1}})) << "base may be deleted by now";
  EXPECT_FALSE(report({base})) << "base may be deleted by now";
  EXPECT_FALSE(report({})) << "it would begin empty";
}

TEST_F(ServersTest, ASnapshotAskedByAnEarlierMasterIsRefused) {
  options.snapshot_interval = seconds(0);
  Start();
  Register(5);
  Done(Want(1).grants);
  const ServerExchangeReply asked = ExchangeServer(ServerRequest());
  ASSERT_THAT(asked.snapshots, SizeIs(2));
  Restart();
  ServerExchangeRequest request = ServerRequest();
  for (const SnapshotCommand& command : asked.snapshots) {
    request.snapshots.push_back(
        {command.partition, command.epoch, {command.number, command.cut, {}}});
  }
  ExchangeServer(request);
  EXPECT_EQ(core->totals().snapshots_accepted, 0u);
}

TEST_F(ServersTest, AnotherProcessIsRestoredAndReplaysWhatNoSnapshotHolds) {
  Start();
  Register(5);
  Done(Want(1).grants);
  const RestoreEpoch before = core->partitions().restore_epoch();
  const OwnerEpoch epoch = core->partitions().entry(PartitionId(0)).epoch;
  Register(6);
  EXPECT_EQ(core->partitions().restore_epoch(), before.Next());
  EXPECT_EQ(core->partitions().entry(PartitionId(0)).epoch, epoch.Next());
  EXPECT_EQ(core->totals().replayed_shards, 1u);
  EXPECT_EQ(core->totals().redelivered_minibatches, 2u);
  EXPECT_TRUE(journal.state().done.empty());
  EXPECT_EQ(Want(1).grants[0].shard.index, ShardIndex(0));
}

TEST_F(ServersTest, TheFirstProcessReplacesNobody) {
  Start();
  const auto grants = Want(1).grants;
  Register(5);
  EXPECT_THAT(Done(grants), ElementsAre(DoneCode::kAccepted)) << "no REVERIFY";
}

TEST_F(ServersTest, MissingRestoresThatPartitionAlone) {
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  Done(Want(1).grants);
  const OwnerEpoch epoch = core->partitions().entry(PartitionId(1)).epoch;
  ServerExchangeRequest request = ServerRequest();
  request.owned.pop_back();
  request.missing.push_back({PartitionId(1), epoch});
  const ServerExchangeReply reply = ExchangeServer(request);
  ASSERT_THAT(reply.owns, SizeIs(1));
  EXPECT_EQ(reply.owns[0].epoch, epoch.Next());
  EXPECT_EQ(core->totals().replayed_shards, 1u);
  request.sequence = ++server_sequence;
  ExchangeServer(request);  // a repeat names an older epoch
  EXPECT_EQ(core->partitions().entry(PartitionId(1)).epoch, epoch.Next());
}

TEST_F(ServersTest, ASilentServerIsLostUntilItComesBack) {
  Start();
  Register(5);
  Advance(options.server_times.timeout);
  EXPECT_EQ(core->nodes().nodes().at("ps-0").record.state, NodeState::kLost);
  ExchangeServer(ServerRequest());
  EXPECT_EQ(core->nodes().nodes().at("ps-0").record.state, NodeState::kRunning);
  EXPECT_TRUE(HasEvent("node-back"));
}

TEST_F(ServersTest, AnUnknownIncarnationIsToldSo) {
  Start();
  Register(5);
  ServerExchangeRequest request = ServerRequest();
  request.incarnation = ServerIncarnation(99);
  EXPECT_TRUE(ExchangeServer(request).unknown_incarnation);
}

TEST_F(ServersTest, SnapshotsThatCannotBeReadEndTheJobAfterAWhile) {
  options.restore_timeout = seconds(60);
  options.snapshot_directory = "/snapshots";
  Start();
  Register(5);
  const auto report = [this](const std::string& error, size_t served) {
    ServerExchangeRequest request = ServerRequest();
    request.owned.resize(served);
    request.restore_error = error;
    ExchangeServer(request);
    Advance(seconds(1));
  };
  const std::string error = "cannot open /snapshots/p00001/x.sst";
  for (int i = 0; i < 59; ++i) report(error, 1);
  EXPECT_FALSE(HasEvent("restored"));
  report("", 2);
  EXPECT_THAT(EventOf("restore-error"), HasSubstr(error));
  EXPECT_EQ(EventOf("restored"), "ps-0: it serves all its partitions again");
  for (int i = 0; i < 60; ++i) report(error, 1);
  EXPECT_EQ(core->state(), JobState::kRunning);
  report(error, 1);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), AllOf(HasSubstr("ps-0: 1 of its partitions"), HasSubstr(error),
                                    HasSubstr("60 s"), HasSubstr("Put the files of /snapshots")));
  options.run_id = "run-2";
  Restart();
  EXPECT_EQ(core->state(), JobState::kRunning) << "another run may find them again";
}

TEST_F(ServersTest, AFullDiskIsNoTroubleOfARestore) {
  options.restore_timeout = seconds(10);
  Start();
  Register(5);
  for (int i = 0; i < 60; ++i) {
    ServerExchangeRequest request = ServerRequest();
    request.snapshot_error = "No space left on device";
    ExchangeServer(request);
    Advance(seconds(1));
  }
  EXPECT_EQ(core->state(), JobState::kRunning);
  EXPECT_FALSE(HasEvent("restore-error"));
}

TEST_F(ServersTest, AFullDiskIsNoTroubleOfARestoreThatIsUnderWay) {
  options.restore_timeout = seconds(10);
  Start();
  Register(5);
  const auto report = [this](const std::string& restore_error) {
    ServerExchangeRequest request = ServerRequest();
    request.owned.resize(1);  // the other one is being read
    request.snapshot_error = "No space left on device";
    request.restore_error = restore_error;
    ExchangeServer(request);
    Advance(seconds(1));
  };
  for (int i = 0; i < 60; ++i) report("");
  EXPECT_FALSE(HasEvent("restore-error"));
  report("cannot open /snapshots/p00001/x.sst");
  EXPECT_THAT(EventOf("restore-error"), HasSubstr("x.sst"));
  EXPECT_THAT(EventOf("snapshot-error"), HasSubstr("No space left"));
  for (int i = 0; i < 60; ++i) report("");
  EXPECT_EQ(core->state(), JobState::kRunning) << "it reads: the trouble does not get older";
}

TEST_F(ServersTest, ForgettingWaitsForTheFloorAndIsToldAgainAfterARestore) {
  options.snapshot_interval = seconds(0);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  const auto grants = Want(2).grants;
  Done({grants[1]});
  // The done call held grants[1] alone, so the lease on grants[0] has ended; its shard is leased
  // again, under a newer token.
  const auto held = Want(1).grants;
  Snapshot();
  ASSERT_EQ(core->ledger().commit_seq(), DoneSeq(1));
  Advance(seconds(1));
  const uint64_t version = core->forget_state().version;
  EXPECT_NE(version, 0u);
  EXPECT_EQ(core->forget_state().floor, held[0].token);
  EXPECT_TRUE(ExchangeServer(ServerRequest()).forget.has_value());
  Register(6);
  ExchangeServer(ServerRequest());
  Advance(seconds(1));
  const uint64_t restored = core->forget_state().version;
  EXPECT_GT(restored, version);
  ExchangeServer(ServerRequest());
  Advance(seconds(1));
  EXPECT_EQ(core->forget_state().version, restored) << "nothing is new";
}

// A partition that is being restored may be told too early: it is told when it serves.
TEST_F(ServersTest, WhatIsForgottenIsToldWhenARestoredPartitionServes) {
  options.snapshot_interval = seconds(0);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  Done(Want(1).grants);
  Snapshot();
  Advance(seconds(1));
  Register(6);
  Advance(seconds(1));
  const uint64_t early = core->forget_state().version;
  ExchangeServer(ServerRequest());
  Advance(seconds(1));
  EXPECT_GT(core->forget_state().version, early);
}

TEST_F(ServersTest, WorkersHearOfTheAddressesOfANewProcess) {
  Start();
  const auto map = [&] { return *Want(0).map; };
  const auto come = [&](uint64_t nonce, const std::string& address) {
    ASSERT_THAT(core->RegisterServer({"ps-0", nonce, {{address}}}, At()).status(), IsOk());
    Sync();
  };
  const std::vector<std::vector<std::string>> a = {{"unix:/a"}}, b = {{"unix:/b"}},
                                              c = {{"unix:/c"}};
  come(5, "unix:/a");
  EXPECT_EQ(map().servers.at(0).lanes, a);
  come(6, "unix:/b");
  EXPECT_EQ(map().servers.at(0).lanes, b);
  const PartitionMap before = map();
  come(6, "unix:/b");
  EXPECT_EQ(map().version, before.version) << "nothing is new";
  come(6, "unix:/c");
  EXPECT_EQ(map().servers.at(0).lanes, c);
  EXPECT_GT(map().version, before.version);
  EXPECT_EQ(map().restore_epoch, before.restore_epoch) << "it is the same process";
  EXPECT_EQ(journal.state().meta->map_version, map().version);
  EXPECT_EQ(journal.state().nodes.at("ps-0").lanes, c);
  EXPECT_THAT(core->RegisterServer({"ps-0", 0, {}}, At()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a nonce must not be 0")));
}

TEST_F(ServersTest, PartsOfAllProcessesAreCounted) {
  Start();
  const auto tell = [&](uint64_t skipped, uint64_t stale) {
    ServerExchangeRequest request = ServerRequest();
    request.counters.parts_skipped = skipped;
    request.counters.parts_stale = stale;
    ExchangeServer(request);
    Sync();
  };
  Register(5);
  tell(5, 3);
  tell(5, 4);
  EXPECT_EQ(core->nodes().nodes().at("ps-0").counters.parts_stale, 4u);
  Restart();
  EXPECT_EQ(core->nodes().PartsSkipped(), 5u);
  EXPECT_EQ(core->nodes().PartsStale(), 4u);
  Register(6);
  tell(2, 1);
  EXPECT_EQ(core->nodes().PartsSkipped(), 7u);
  EXPECT_EQ(core->nodes().PartsStale(), 5u);
}

TEST_F(ServersTest, AcceptedSnapshotsAreToldUntilTheServerKnowsThem) {
  options.snapshot_interval = seconds(0);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  Done(Want(1).grants);
  EXPECT_EQ(Snapshot(), 2u);
  ServerExchangeRequest request = ServerRequest();
  request.owned[0].accepted = SnapshotNumber();
  request.owned.push_back({PartitionId(2), OwnerEpoch(1), {}});  // there is none
  const ServerExchangeReply reply = ExchangeServer(request);
  ASSERT_THAT(reply.accepted, SizeIs(1));
  EXPECT_EQ(reply.accepted[0].partition, PartitionId(0));
  EXPECT_EQ(reply.accepted[0].number, core->partitions().manifest(PartitionId(0)).number);
  EXPECT_EQ(reply.master_incarnation, core->incarnation());
  EXPECT_THAT(ExchangeServer(ServerRequest()).accepted, IsEmpty());
}

TEST_F(ServersTest, AnOlderLeaseHoldsForgettingBack) {
  options.snapshot_interval = seconds(0);
  Start();
  Register(5);
  ExchangeServer(ServerRequest());
  const auto grants = Want(2).grants;
  WorkerExchangeRequest request = Request();
  Hold(grants, &request);
  request.done.push_back({grants[1].shard, grants[1].token, grants[1].restore_epoch, {}, {}});
  Exchange(request);
  Snapshot();
  ASSERT_EQ(core->ledger().commit_seq(), DoneSeq(1));
  Advance(seconds(1));
  EXPECT_EQ(core->forget_state().version, 0u);
}

TEST_F(ServersTest, AFullDiskIsOneEventWhenItBeginsAndOneWhenItHasPassed) {
  Start();
  Register(5);
  for (int i = 0; i < 20; ++i) {
    ServerExchangeRequest request = ServerRequest();
    if (i % 2 == 0) request.snapshot_error = fmt::format("p{}: No space left on device", i);
    ExchangeServer(request);
    Advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(EventCount("snapshot-error"), 1u);
  EXPECT_EQ(EventCount("snapshots-work-again"), 0u);
  now += options.snapshot_interval + options.snapshot_timeout;
  ExchangeServer(ServerRequest());
  ExchangeServer(ServerRequest());
  EXPECT_EQ(EventCount("snapshots-work-again"), 1u);
  ServerExchangeRequest request = ServerRequest();
  request.snapshot_error = "p3: No space left on device";
  ExchangeServer(request);
  EXPECT_EQ(EventCount("snapshot-error"), 2u);
}

TEST_F(ServersTest, TrafficIsTheOwnersAndStartsAnewWithIt) {
  options.servers = 2;
  Start();
  Register(5, 1);
  const PartitionId mine(1), other(0);
  ASSERT_EQ(core->partitions().entry(mine).owner, ServerId(1));
  ServerExchangeRequest request = ServerRequest(1);
  request.traffic = {{mine, 1, 2, 3, 4, 5, 6, 7},
                     {.partition = other, .pulls = 9},
                     {.partition = PartitionId(77)}};
  EXPECT_FALSE(core->partitions().SeenOf(mine).serving);
  ExchangeServer(request);
  EXPECT_TRUE(core->partitions().SeenOf(mine).serving);
  EXPECT_EQ(core->partitions().SeenOf(mine).traffic, (PartitionTraffic{mine, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(core->partitions().SeenOf(other).traffic, std::nullopt);
  ExchangeServer(ServerRequest(1));
  EXPECT_TRUE(core->partitions().SeenOf(mine).traffic.has_value()) << "unchanged";
  Register(6, 1);
  EXPECT_EQ(core->partitions().SeenOf(mine).traffic, std::nullopt);
  EXPECT_FALSE(core->partitions().SeenOf(mine).serving);
}

}  // namespace
}  // namespace muster
