#include "ps/service/parameter_server.h"

#include <algorithm>
#include <future>
#include <map>

#include "tests/ps/net/wire_client.h"
#include "tests/ps/service/fake_master.h"
#include "tests/ps/service/memory_storage.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::ps {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeMaster;
using testing::Frame;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MemoryFiles;
using testing::MemoryStorage;
using ::testing::SizeIs;
using testing::WireClient;
using wire::PartCode;

constexpr uint32_t kPartitions = 4;

/// A master that owns all partitions to the server at `epoch`, from `manifests` where it has one.
struct World {
  uint64_t master = 1;
  uint64_t epoch = 1;
  bool unknown = false;
  bool drained = false;
  std::map<uint32_t, Manifest> manifests;
  std::optional<SnapshotCommand> ask;
  std::vector<TableSpec> tables;

  ServerExchangeReply Answer(const ServerExchangeRequest& request) {
    ServerExchangeReply reply;
    reply.master_incarnation = MasterIncarnation(master);
    reply.unknown_incarnation = unknown;
    reply.drained = drained;
    for (const TableSpec& table : tables) {
      if (table.id > request.newest_table) reply.tables.push_back(table);
    }
    for (const SnapshotReport& report : request.snapshots) {
      manifests[report.partition.value()] = report.manifest;
      if (ask.has_value() && ask->number == report.manifest.number) ask.reset();
    }
    for (uint32_t i = 0; i < kPartitions; ++i) {
      const auto owned =
          std::ranges::find(request.owned, PartitionId(i), &OwnedPartition::partition);
      const bool has = owned != request.owned.end() && owned->epoch == OwnerEpoch(epoch);
      if (!has) {
        reply.owns.push_back(
            {PartitionId(i), OwnerEpoch(epoch), OwnerEpoch(epoch), {}, true, manifests[i]});
      } else if (owned->accepted != manifests[i].number) {
        reply.accepted.push_back({PartitionId(i), manifests[i].number});
      }
    }
    if (ask.has_value()) reply.snapshots.push_back(*ask);
    return reply;
  }
};

TableSpec SumTable(uint32_t id, const std::string& warm_start = "") {
  TableSpec table;
  table.id = TableId(id);
  table.name = "t" + std::to_string(id);
  table.dim = 2;
  table.optimizer = SumSpec{};
  table.warm_start_directory = warm_start;
  return table;
}

bool OwnsAll(const ServerExchangeRequest& request, uint64_t epoch) {
  return request.owned.size() == kPartitions &&
         std::ranges::all_of(request.owned, [&](const OwnedPartition& owned) {
           return owned.epoch == OwnerEpoch(epoch);
         });
}

class ParameterServerTest : public ::testing::Test {
 protected:
  ParameterServerTest() { world_.tables = {SumTable(1)}; }
  ~ParameterServerTest() override { EXPECT_THAT(Stop(), IsOk()); }

  void Start(const std::string& address) {
    server_ = std::make_unique<ParameterServer>(
        ParameterServer::Options{.name = "ps-0",
                                 .socket_directory = dir_.path(),
                                 .lanes = 2,
                                 .nonce = 99,
                                 .limits = {},
                                 .warm_start_pause = std::chrono::milliseconds(10),
                                 .leave_timeout = leave_timeout_},
        MakeGrpcMasterClient(address, job_id_),
        [this](const ServerIdentity& /*identity*/) {
          return std::make_unique<MemoryStorage>(&files_);
        },
        &clock_);
    result_ = std::async(std::launch::async, [this] { return server_->Run(); });
  }
  /// A server that owns everything and knows the tables.
  void StartServing() {
    master_ = std::make_unique<FakeMaster>();
    Script();
    Start(master_->address());
    lanes_ = master_->WaitForRegistration().lanes;
    const TableId newest = NewestTable();
    ASSERT_THAT(lanes_, SizeIs(2));
    ASSERT_TRUE(master_->WaitFor([newest](const ServerExchangeRequest& request) {
      return OwnsAll(request, 1) && request.newest_table == newest;
    }));
  }
  void Script() {
    master_->SetScript([this](const ServerExchangeRequest& request) {
      MutexLock lock(&mutex_);
      return world_.Answer(request);
    });
  }
  /// Changes the world as the master sees it.
  void Change(const std::function<void(World*)>& change) {
    MutexLock lock(&mutex_);
    change(&world_);
  }
  TableId NewestTable() {
    MutexLock lock(&mutex_);
    return world_.tables.back().id;
  }
  absl::Status Stop() {
    if (server_ == nullptr) return absl::OkStatus();
    server_->RequestStop();
    const absl::Status status = result_.get();
    server_.reset();
    return status;
  }

  std::unique_ptr<WireClient> Client(uint32_t partition, size_t address = 0) {
    auto client = std::make_unique<WireClient>(lanes_[partition % 2][address]);
    client->SendHello("job");
    EXPECT_TRUE(client->Receive());
    return client;
  }
  PartCode Push(uint32_t partition, uint64_t epoch, uint64_t key, float value, uint32_t minibatch) {
    wire::PushPart part;
    part.partition = partition;
    part.owner_epoch = epoch;
    part.minibatch = minibatch;
    part.token = 5;
    part.groups = {{.table = 1, .keys = 1}};
    wire::Header header;
    header.kind = wire::Kind::kPush;
    header.parts = 1;
    const std::vector<float> values = {value, value};
    const auto client = Client(partition);
    client->Send(header, wire::EncodePush({&part, 1}), {&key, 1},
                 {reinterpret_cast<const char*>(values.data()), sizeof(float) * values.size()});
    const auto frame = client->Receive();
    if (!frame) return PartCode::kBadRequest;  // Client() said why
    return wire::DecodeReply(frame->header, frame->directory)->parts.at(0).code;
  }
  /// The rows of `key`, empty unless OK.
  std::vector<float> Pull(uint32_t partition, uint64_t epoch, uint64_t key, uint32_t table = 1,
                          size_t address = 0) {
    const wire::PullPart part{
        .partition = partition, .owner_epoch = epoch, .groups = {{.table = table, .keys = 1}}};
    wire::Header header;
    header.kind = wire::Kind::kPull;
    header.parts = 1;
    const auto client = Client(partition, address);
    client->Send(header, wire::EncodePull({&part, 1}), {&key, 1});
    const auto frame = client->Receive();
    return frame ? frame->values : std::vector<float>();
  }

  ::muster::testing::TempDir dir_;
  std::string job_id_;  // known beforehand
  std::chrono::milliseconds leave_timeout_{60'000};
  SystemClock clock_;
  MemoryFiles files_;
  Mutex mutex_;
  World world_ MUSTER_GUARDED_BY(mutex_);
  std::unique_ptr<FakeMaster> master_;
  std::unique_ptr<ParameterServer> server_;
  std::future<absl::Status> result_;
  std::vector<std::vector<std::string>> lanes_;
};

TEST_F(ParameterServerTest, ServesWhatTheMasterSaysItOwns) {
  StartServing();
  EXPECT_EQ(lanes_[0][0], "unix:" + dir_.File("ps-0.0.sock"));
  EXPECT_EQ(lanes_[1][0], "unix:" + dir_.File("ps-0.1.sock"));
  for (uint32_t partition = 0; partition < kPartitions; ++partition) {
    EXPECT_EQ(Push(partition, 1, 7, 3, 0), PartCode::kOk);
    EXPECT_EQ(Push(partition, 2, 7, 3, 1), PartCode::kWrongOwner);
    EXPECT_THAT(Pull(partition, 1, 7, 1, 0), ElementsAre(3, 3));
    EXPECT_THAT(Pull(partition, 1, 7, 1, 1), ElementsAre(3, 3));
  }
  WireClient stranger(lanes_[0][0]);
  stranger.SendHello("job", "id-2");
  EXPECT_THAT(stranger.ReceiveErrorAndEnd(),
              AllOf(HasSubstr("this server belongs to job 'job' (id id-1)"),
                    HasSubstr("worker-0 to job 'job' (id id-2)")));
  WireClient nobody(lanes_[0][0]);
  nobody.SendHello("job", "");
  EXPECT_THAT(nobody.ReceiveErrorAndEnd(), HasSubstr("does not say which job"));
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

TEST_F(ParameterServerTest, GoesOnServingWhileTheMasterIsAwayAndFindsTheNextOne) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  const int port = master_->port();
  master_.reset();
  EXPECT_EQ(Push(2, 1, 7, 3, 1), PartCode::kOk);
  EXPECT_THAT(Pull(2, 1, 7), ElementsAre(6, 6));
  Change([](World* world) { world->master = 2; });
  master_ = std::make_unique<FakeMaster>(port);
  Script();
  EXPECT_TRUE(master_->WaitFor([](const ServerExchangeRequest& request) {
    return OwnsAll(request, 1) && request.counters.parts_applied == 2;
  }));
  EXPECT_THAT(Pull(2, 1, 7), ElementsAre(6, 6));
}

TEST_F(ParameterServerTest, AMasterOfAnotherJobIsLikeOneThatIsAway) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  const int port = master_->port();
  master_ = nullptr;
  Change(
      [](World* world) { world->unknown = true; });  // what the other one says of its own servers
  master_ = std::make_unique<FakeMaster>(port, "id-2");
  Script();
  ASSERT_TRUE(master_->WaitForStranger());
  EXPECT_THAT(Pull(2, 1, 7), ElementsAre(3, 3));
  master_ = nullptr;
  Change([](World* world) { world->unknown = false; });
  master_ = std::make_unique<FakeMaster>(port);
  Script();
  EXPECT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 1); }));
}

TEST_F(ParameterServerTest, RegistersWithTheMasterOfItsOwnJobOnly) {
  master_ = std::make_unique<FakeMaster>(0, "id-2");
  const int port = master_->port();
  job_id_ = "id-1";
  Start(master_->address());
  ASSERT_TRUE(master_->WaitForStranger());
  master_ = nullptr;
  master_ = std::make_unique<FakeMaster>(port);
  Script();
  EXPECT_EQ(master_->WaitForRegistration().name, "ps-0");
}

TEST_F(ParameterServerTest, AMasterThatCancelsItsAnswerIsOnlyAway) {
  StartServing();
  master_->FailExchange({grpc::StatusCode::CANCELLED, "shutting down"});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(
        master_->WaitFor([](const ServerExchangeRequest& request) { return OwnsAll(request, 1); }));
  }
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
}

TEST_F(ParameterServerTest, EndsWhenTheMasterNoLongerKnowsIt) {
  StartServing();
  Change([](World* world) { world->unknown = true; });
  EXPECT_THAT(result_.get(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("started anew")));
  server_.reset();
}

TEST_F(ParameterServerTest, EndsWhenTheMasterRefusesIt) {
  master_ = std::make_unique<FakeMaster>();
  master_->RefuseRegistration(
      {grpc::StatusCode::FAILED_PRECONDITION, "this master is of version 0.2, ps-0 of 0.1"});
  Start(master_->address());
  EXPECT_THAT(result_.get(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("refused to register ps-0: this master is of version 0.2")));
  server_.reset();
}

TEST_F(ParameterServerTest, StopsWhileNoMasterAnswers) {
  Start("127.0.0.1:1");
  EXPECT_THAT(Stop(), IsOk());
}

TEST_F(ParameterServerTest, WhoIsToldToLeaveServesUntilItIsDrained) {
  StartServing();
  EXPECT_EQ(Push(2, 1, 7, 3, 0), PartCode::kOk);
  server_->RequestLeave();
  ASSERT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return request.leaving; }));
  EXPECT_EQ(Push(2, 1, 7, 3, 1), PartCode::kOk);
  server_->RequestLeave();
  Change([](World* world) { world->drained = true; });
  EXPECT_THAT(result_.get(), IsOk());
  server_.reset();
}

TEST_F(ParameterServerTest, WhoLeavesWaitsForNoMasterAndNotForEver) {
  StartServing();
  server_->RequestLeave();
  ASSERT_TRUE(
      master_->WaitFor([](const ServerExchangeRequest& request) { return request.leaving; }));
  master_.reset();
  EXPECT_THAT(result_.get(), IsOk());
  leave_timeout_ = std::chrono::milliseconds(1);
  StartServing();
  server_->RequestLeave();
  EXPECT_THAT(result_.get(), IsOk()) << "the master never says that it is drained";
  Start("127.0.0.1:1");
  server_->RequestLeave();
  EXPECT_THAT(result_.get(), IsOk()) << "it never registered";
  server_.reset();
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
