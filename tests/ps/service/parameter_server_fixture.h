#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ps/service/parameter_server.h"
#include "tests/ps/net/wire_client.h"
#include "tests/ps/service/fake_master.h"
#include "tests/ps/service/memory_storage.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::ps::testing {

using ::muster::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using wire::PartCode;

inline constexpr uint32_t kPartitions = 4;
/// Tests put the clock forward by more.
inline constexpr std::chrono::hours kSilenceMax{1};

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

inline TableSpec SumTable(uint32_t id, const std::string& warm_start = "") {
  TableSpec table;
  table.id = TableId(id);
  table.name = "t" + std::to_string(id);
  table.dim = 2;
  table.optimizer = SumSpec{};
  table.warm_start_directory = warm_start;
  return table;
}

inline bool OwnsAll(const ServerExchangeRequest& request, uint64_t epoch) {
  return request.owned.size() == kPartitions &&
         std::ranges::all_of(request.owned, [&](const OwnedPartition& owned) {
           return owned.epoch == OwnerEpoch(epoch);
         });
}

/// The system's clock, which can be put forward. While it is shut for a thread, that thread stands
/// still in it.
class GateClock final : public Clock {
 public:
  TimePoint Now() const override {
    char name[16] = "";
    ::pthread_getname_np(::pthread_self(), name, sizeof(name));
    MutexLock lock(&mutex_);
    while (shut_for_ == name) changed_.Wait(&mutex_);
    return clock_.Now() + ahead_;
  }
  void PutForward(std::chrono::nanoseconds by) {
    MutexLock lock(&mutex_);
    ahead_ += by;
  }
  WallTime Wall() const override { return clock_.Wall(); }
  void Shut(const std::string& thread) {
    MutexLock lock(&mutex_);
    shut_for_ = thread;
  }
  void Open() {
    MutexLock lock(&mutex_);
    shut_for_ = "(no job)";
    changed_.SignalAll();
  }

 private:
  SystemClock clock_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::string shut_for_ MUSTER_GUARDED_BY(mutex_) = "(no job)";
  std::chrono::nanoseconds ahead_ MUSTER_GUARDED_BY(mutex_){0};
};

class ParameterServerTest : public ::testing::Test {
 protected:
  ParameterServerTest() { world_.tables = {SumTable(1)}; }
  ~ParameterServerTest() override {
    clock_.Open();
    EXPECT_THAT(Stop(), IsOk());
  }

  /// How the server ends when `time` has passed without the master. An answer that was on its way
  /// may be heard after the clock was put forward, so once is not always enough.
  absl::Status ResultAfter(std::chrono::nanoseconds time) {
    do {
      clock_.PutForward(time);
    } while (result_.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready);
    return result_.get();
  }

  void Start(const std::string& address) {
    server_ = std::make_unique<ParameterServer>(
        ParameterServer::Options{.name = "ps-0",
                                 .socket_directory = dir_.path(),
                                 .lanes = 2,
                                 .nonce = 99,
                                 .start = StartNumber(4),
                                 .limits = {},
                                 .retry_pause = std::chrono::milliseconds(10),
                                 .lane_patience = std::chrono::milliseconds(20),
                                 .lane_silence_max = kSilenceMax,
                                 .warm_start_pause = std::chrono::milliseconds(10),
                                 .leave_timeout = leave_timeout_,
                                 .absence = {.max = kSilenceMax}},
        *MakeGrpcMasterClient({address, job_id_}, clock_),
        [this](const RegisterServerReply& /*registered*/) {
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
    const std::string directory = wire::EncodePush({.minibatch = minibatch, .token = 5},
                                                   {partition, epoch, {{.table = 1, .keys = 1}}});
    wire::Header header;
    header.kind = wire::Kind::kPush;
    header.parts = 1;
    const std::vector<float> values = {value, value};
    const auto client = Client(partition);
    client->Send(header, directory, {&key, 1},
                 {reinterpret_cast<const char*>(values.data()), sizeof(float) * values.size()});
    const auto frame = client->Receive();
    if (!frame) return PartCode::kBadRequest;  // Client() said why
    return wire::DecodeReply(frame->header, frame->directory)->parts.at(0).code;
  }
  /// True if a minibatch is in the rows.
  PartCode Ask(uint32_t partition, uint64_t epoch, uint32_t minibatch) {
    wire::Header header;
    header.kind = wire::Kind::kPush;
    header.parts = 1;
    const auto client = Client(partition);
    client->Send(header,
                 wire::EncodePush({.minibatch = minibatch, .token = 5}, {partition, epoch, {}}));
    const auto frame = client->Receive();
    if (!frame) return PartCode::kBadRequest;
    return wire::DecodeReply(frame->header, frame->directory)->parts.at(0).code;
  }
  /// The rows of `key`, empty unless OK.
  std::vector<float> Pull(uint32_t partition, uint64_t epoch, uint64_t key, uint32_t table = 1,
                          size_t address = 0) {
    wire::Header header;
    header.kind = wire::Kind::kPull;
    header.parts = 1;
    const auto client = Client(partition, address);
    client->Send(header, wire::EncodePull({partition, epoch, {{.table = table, .keys = 1}}}),
                 {&key, 1});
    const auto frame = client->Receive();
    return frame ? frame->values : std::vector<float>();
  }

  ::muster::testing::TempDir dir_;
  std::string job_id_;  // known beforehand
  std::chrono::milliseconds leave_timeout_{60'000};
  GateClock clock_;
  MemoryFiles files_;
  Mutex mutex_;
  World world_ MUSTER_GUARDED_BY(mutex_);
  std::unique_ptr<FakeMaster> master_;
  std::unique_ptr<ParameterServer> server_;
  std::future<absl::Status> result_;
  std::vector<std::vector<std::string>> lanes_;
};

}  // namespace muster::ps::testing
