#include <algorithm>

#include "sharding/partition_of.h"
#include "tests/ps/service/parameter_server_fixture.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeMaster;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kPartitions;
using testing::OwnsAll;
using testing::ParameterServerTest;
using ::testing::SizeIs;
using testing::SumTable;
using testing::WireClient;
using testing::World;
using wire::PartCode;

TEST_F(ParameterServerTest, ServesWhatTheMasterSaysItOwns) {
  StartServing();
  EXPECT_EQ(lanes_[0][0], "unix:" + dir_.File("ps-0.0.sock"));
  EXPECT_EQ(lanes_[1][0], "unix:" + dir_.File("ps-0.1.sock"));
  for (uint32_t partition = 0; partition < kPartitions; ++partition) {
    EXPECT_EQ(Push(partition, 1, 7, 3, 0), PartCode::kOk);
    EXPECT_EQ(Ask(partition, 1, 0), PartCode::kOk);
    EXPECT_EQ(Ask(partition, 1, 1), PartCode::kMissing);
    EXPECT_EQ(Push(partition, 2, 7, 3, 1), PartCode::kWrongOwner);
    EXPECT_THAT(Pull(partition, 1, 7, 1, 0), ElementsAre(3, 3));
    EXPECT_THAT(Pull(partition, 1, 7, 1, 1), ElementsAre(3, 3));
  }
  WireClient stranger(lanes_[0][0]);
  stranger.SendHello("job", "id-2");
  EXPECT_THAT(stranger.ReceiveErrorAndEnd(),
              AllOf(HasSubstr("this server belongs to job 'job' (id id-1)"),
                    HasSubstr("worker-0 to job 'job' (id id-2)")));
  WireClient nameless(lanes_[0][0]);
  nameless.SendHello("job", "");
  EXPECT_THAT(nameless.ReceiveErrorAndEnd(), HasSubstr("does not say which job"));
  EXPECT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return request.counters.parts_applied == 4 && request.counters.parts_wrong_owner == 4 &&
           request.counters.rows == 4;
  }));
  EXPECT_THAT(Stop(), IsOk());
}

TEST_F(ParameterServerTest, SnapshotsAreWrittenReportedAndRestored) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  const SnapshotNumber number(MasterIncarnation(1), 1);
  Change([&](World* world) {
    world->ask = SnapshotCommand{PartitionId(2), OwnerEpoch(1), DoneSeq(6), number};
  });
  ASSERT_TRUE(master_->WaitFor([&](const ServerExchangeRequest& request) {
    return std::ranges::any_of(request.owned, [&](const OwnedPartition& owned) {
      return owned.partition == PartitionId(2) && owned.accepted == number;
    });
  }));
  {
    MutexLock lock(&mutex_);
    EXPECT_EQ(world_.manifests[2].cut, DoneSeq(6));
    EXPECT_THAT(world_.manifests[2].files, SizeIs(1));
  }
  EXPECT_EQ(files_.writer_niceness(), std::min(::getpriority(PRIO_PROCESS, 0) + 5, 19));
  EXPECT_EQ(Push(2, 1, 7, 4, 1), PartCode::kOk);
  Change([](World* world) { world->epoch = 2; });
  ASSERT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 2); }));
  EXPECT_THAT(Pull(2, 2, 7), ElementsAre(3, 3)) << "what came after the snapshot is gone";
  EXPECT_EQ(Push(2, 2, 7, 4, 1), PartCode::kOk);
  EXPECT_THAT(Pull(2, 2, 7), ElementsAre(7, 7));
}

TEST_F(ParameterServerTest, AFullDiskIsReportedAndPasses) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  files_.FailWrites(absl::ResourceExhaustedError("disk full: /snapshots"));
  Change([&](World* world) {
    world->ask = SnapshotCommand{PartitionId(2), OwnerEpoch(1), DoneSeq(6),
                                 SnapshotNumber(MasterIncarnation(1), 1)};
  });
  ASSERT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return request.snapshot_error == "disk full: /snapshots";
  }));
  EXPECT_THAT(Pull(2, 1, 7), ElementsAre(3, 3));
  files_.FailWrites(absl::OkStatus());
  EXPECT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return !request.snapshots.empty() && request.snapshot_error.empty();
  }));
}

TEST_F(ParameterServerTest, FailedWritesGiveTheirImageSlotsBack) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  files_.FailWrites(absl::ResourceExhaustedError("disk full: /snapshots"));
  Change([&](World* world) {
    world->ask = SnapshotCommand{PartitionId(2), OwnerEpoch(1), DoneSeq(6),
                                 SnapshotNumber(MasterIncarnation(1), 1)};
  });
  ASSERT_TRUE(files_.WaitForFailedWrites(5)) << "there are fewer images than that at a time";
  files_.FailWrites(absl::OkStatus());
  EXPECT_TRUE(master_->WaitFor(
      [](const ServerExchangeRequest& request) { return !request.snapshots.empty(); }));
}

TEST_F(ParameterServerTest, WarmTablesStartWithTheirRows) {
  Change([](World* world) { world->tables = {SumTable(1, "exported"), SumTable(2)}; });
  StartServing();
  const PartitionId partition = PartitionOf(TableId(1), 1, kPartitions);
  ASSERT_TRUE(master_->WaitFor(
      [](const ServerExchangeRequest& request) { return request.counters.rows == 1; }));
  EXPECT_THAT(Pull(partition.value(), 1, 1), ElementsAre(9, 9));
  EXPECT_THAT(Pull(partition.value(), 1, 1, 2), ElementsAre(0, 0));
}

TEST_F(ParameterServerTest, AnExportThatIsAwayIsAwaited) {
  Change([](World* world) { world->tables = {SumTable(1, "exported"), SumTable(2)}; });
  files_.FailWarmStarts(absl::NotFoundError("exported is away"));
  StartServing();
  ASSERT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return request.warm_start_error == "cannot warm-start table \"t1\": exported is away";
  }));
  const PartitionId partition = PartitionOf(TableId(1), 1, kPartitions);
  EXPECT_THAT(Pull(partition.value(), 1, 1), IsEmpty());
  EXPECT_THAT(Pull(partition.value(), 1, 1, 2), ElementsAre(0, 0)) << "other tables are served";
  files_.FailWarmStarts(absl::OkStatus());
  ASSERT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return request.warm_start_error.empty() && request.counters.rows == 1;
  }));
  EXPECT_THAT(Pull(partition.value(), 1, 1), ElementsAre(9, 9));
}

TEST_F(ParameterServerTest, AnExportThatIsWrongIsTheEndOfTheJob) {
  Change([](World* world) { world->tables = {SumTable(1, "exported")}; });
  files_.FailWarmStarts(absl::FailedPreconditionError("another export"));
  StartServing();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
      return request.fatal_error == "cannot warm-start table \"t1\": another export" &&
             request.warm_start_error.empty();
    }));
  }
}

TEST_F(ParameterServerTest, ASnapshotWithTheTableNeedsNoExport) {
  Change([](World* world) { world->tables = {SumTable(1, "exported")}; });
  StartServing();
  const PartitionId partition = PartitionOf(TableId(1), 1, kPartitions);
  ASSERT_TRUE(master_->WaitFor(
      [](const ServerExchangeRequest& request) { return request.counters.rows == 1; }));
  const SnapshotNumber number(MasterIncarnation(1), 1);
  for (uint32_t i = 0; i < kPartitions; ++i) {
    // A snapshot has the table only after the partition's own warm start.
    uint64_t key = 0;
    while (PartitionOf(TableId(1), key, kPartitions) != PartitionId(i)) ++key;
    while (Pull(i, 1, key).empty()) {
      ASSERT_TRUE(master_->WaitFor([](const ServerExchangeRequest&) { return true; }));
    }
    Change([&](World* world) {
      world->ask = SnapshotCommand{PartitionId(i), OwnerEpoch(1), DoneSeq(6), number};
    });
    ASSERT_TRUE(master_->WaitFor([&](const ServerExchangeRequest& request) {
      return std::ranges::any_of(request.owned, [&](const OwnedPartition& owned) {
        return owned.partition == PartitionId(i) && owned.accepted == number;
      });
    }));
  }
  EXPECT_THAT(Stop(), IsOk());
  // Another process, and the folder is gone.
  files_.FailWarmStarts(absl::FailedPreconditionError("another export"));
  Change([](World* world) { world->epoch = 2; });
  Start(master_->address());
  ASSERT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 2); }));
  lanes_ = master_->WaitForRegistration().lanes;
  EXPECT_THAT(Pull(partition.value(), 2, 1), ElementsAre(9, 9));
  EXPECT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return request.fatal_error.empty() && request.newest_table == TableId(1);
  }));
}

TEST_F(ParameterServerTest, AFailedLoadIsTriedAgainWhileTheMasterIsAway) {
  files_.FailReads(absl::UnavailableError("the share is away"));
  Change([](World* world) {
    world->manifests[2] = {SnapshotNumber(MasterIncarnation(1), 1), DoneSeq(6), {{"file", 1}}};
  });
  master_ = std::make_unique<FakeMaster>();
  Script();
  Start(master_->address());
  ASSERT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return request.restore_error.ends_with("the share is away");
  }));
  master_.reset();
  EXPECT_TRUE(files_.WaitForFailedReads(files_.failed_reads() + 3));
}

TEST_F(ParameterServerTest, PartitionsAreReadAtTheSameTime) {
  files_.HoldReadsUntil(2);
  Change([](World* world) {
    for (const uint32_t partition : {0, 1}) {
      world->manifests[partition] = {
          SnapshotNumber(MasterIncarnation(1), 1), DoneSeq(6), {{"file", 1}}};
    }
  });
  master_ = std::make_unique<FakeMaster>();
  Script();
  Start(master_->address());
  EXPECT_TRUE(files_.WaitForReads(2)) << "the first one waits for the second one";
}

TEST_F(ParameterServerTest, TrafficReachesTheMaster) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  EXPECT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return request.counters.pushes == 1 && request.counters.received_bytes > 0 &&
           std::ranges::any_of(request.traffic, [](const PartitionTraffic& traffic) {
             return traffic.partition == PartitionId(2) && traffic.pushes == 1;
           });
  }));
}

}  // namespace
}  // namespace muster::ps
