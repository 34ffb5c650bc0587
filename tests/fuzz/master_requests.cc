#include <map>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/interval_set.h"
#include "base/status.h"
#include "proto/fields/decode.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"
#include "tests/master/core/core_fixture.h"

namespace muster::testing {
namespace {

/// What the master must not forget, in the form in which two moments can be compared.
struct Facts {
  explicit Facts(const MasterCore& core)
      : incarnation(core.incarnation()),
        done_seq(core.ledger().done_seq()),
        commit_seq(core.ledger().commit_seq()),
        map_version(core.partitions().version()),
        restore_epoch(core.partitions().restore_epoch()),
        done(core.ledger().queue().done().begin(), core.ledger().queue().done().end()),
        failed(core.ledger().queue().FailedShards()),
        tables(core.tables()),
        entries(core.partitions().Entries()),
        snapshots_accepted(core.totals().snapshots_accepted) {
    const ShardQueue& queue = core.ledger().queue();
    for (uint32_t dataset = 0; dataset < queue.dataset_count(); ++dataset) {
      for (uint32_t epoch = 0; epoch < queue.epochs(DatasetId(dataset)); ++epoch) {
        committed.push_back(queue.Committed(DatasetId(dataset), EpochIndex(epoch)));
        // Ten a shard, in every plan of this target.
        MUSTER_CHECK(core.ledger().RecordsCommitted(DatasetId(dataset), EpochIndex(epoch)) ==
                     10 * committed.back().count());
      }
    }
    for (uint32_t p = 0; p < core.partitions().size(); ++p) {
      manifests.push_back(core.partitions().manifest(PartitionId(p)));
    }
  }

  /// Of one master, later than `before`.
  void CheckGrewFrom(const Facts& before) const {
    MUSTER_CHECK(done_seq >= before.done_seq && commit_seq >= before.commit_seq);
    MUSTER_CHECK(map_version >= before.map_version && restore_epoch >= before.restore_epoch);
    for (size_t i = 0; i < committed.size(); ++i) {
      IntervalSet lost = before.committed[i];
      for (const auto& [begin, end] : committed[i].intervals()) lost.Remove(begin, end);
      MUSTER_CHECK_MSG(lost.empty(), "a COMMITTED shard is no longer COMMITTED");
    }
    for (size_t p = 0; p < manifests.size(); ++p) {
      MUSTER_CHECK(manifests[p].cut >= before.manifests[p].cut);
      MUSTER_CHECK(manifests[p].number >= before.manifests[p].number);
      MUSTER_CHECK(entries[p].epoch >= before.entries[p].epoch);
    }
    for (const auto& [id, table] : before.tables) MUSTER_CHECK(tables.at(id) == table);
  }

  /// Of the next master, that continues from the journal of the one that `before` is of.
  void CheckGoesOnFrom(const Facts& before) const {
    MUSTER_CHECK(incarnation == before.incarnation.Next());
    MUSTER_CHECK(done_seq == before.done_seq && commit_seq == before.commit_seq);
    MUSTER_CHECK(map_version == before.map_version && restore_epoch == before.restore_epoch);
    MUSTER_CHECK(done == before.done && committed == before.committed && failed == before.failed);
    MUSTER_CHECK(manifests == before.manifests && entries == before.entries);
    MUSTER_CHECK(tables == before.tables && snapshots_accepted == before.snapshots_accepted);
  }

  MasterIncarnation incarnation;
  DoneSeq done_seq, commit_seq;
  MapVersion map_version;
  RestoreEpoch restore_epoch;
  std::vector<DoneShard> done;
  std::vector<IntervalSet> committed;  // by dataset and epoch
  std::vector<ShardId> failed;
  std::map<TableId, TableSpec> tables;
  std::vector<PartitionEntry> entries;
  std::vector<Manifest> manifests;
  uint64_t snapshots_accepted = 0;
};

/// A master with a worker that has said hello and holds two shards, and a registered server.
class Master : public CoreFixture {
 public:
  Master() {
    options.datasets.push_back(PlanFor("test", DatasetMode::kEvaluate, 1, 2));
    Start();
    MUSTER_CHECK(core->HelloWorker({"worker-0", 7}, StartNumber(1), At()).ok());
    Note(Want(2).grants);
    (void)core->RegisterServer({"ps-0", 9, {{"unix:/a"}}}, At());
    Sync();
  }

  void Call(uint64_t kind, std::string_view message) {
    switch (kind % 8) {
      case 0:
        return Answer<WorkerExchangeRequest>(message, [this](const auto& request) {
          const auto reply = core->ExchangeWorker(request, At());
          const auto news = core->TellMap(request);
          MUSTER_CHECK((news != nullptr) == (request.map_version < core->partitions().version()));
          if (news != nullptr) MUSTER_CHECK(!news->Encoded().empty());
          if (reply.ok()) Note(reply->grants);
          return reply.status();
        });
      case 1:
        return Answer<ServerExchangeRequest>(message, [this](const auto& request) {
          (void)core->ExchangeServer(request, At());
          return absl::OkStatus();
        });
      case 2:
        return Answer<RegisterServerRequest>(message, [this](const auto& request) {
          return core->RegisterServer(request, At()).status();
        });
      case 3:
        return Answer<TableSpec>(message, [this](const auto& table) {
          return core->RegisterTable(table, At()).status();
        });
      case 4:
        now += std::chrono::milliseconds(message.size() * 10);
        return core->Tick(At());
      case 5:
        (void)core->HelloWorker({"worker-0", message.size()}, StartNumber(message.size() % 3),
                                At());
        return;
      case 6:
        return RestartAndCompare();
      default:
        (void)core->RetryShards({}, At());
        return;
    }
  }

  void RestartAndCompare() {
    const Facts before(*core);
    Restart();
    Facts(*core).CheckGoesOnFrom(before);
  }

 private:
  /// A token of this master means one shard, and newer ones are larger. What a former one granted
  /// is the worker's own word (docs/protocol.md), which may be a lie here.
  void Note(const std::vector<ShardGrant>& grants) {
    for (const ShardGrant& grant : grants) {
      if (grant.token.incarnation() < core->incarnation()) continue;
      const bool newest = granted_.empty() || granted_.rbegin()->first < grant.token;
      const auto [it, added] = granted_.try_emplace(grant.token, grant.shard);
      MUSTER_CHECK(added ? newest : it->second == grant.shard);
    }
  }

  template <fields::Listed Request, typename Step>
  void Answer(std::string_view bytes, const Step& step) {
    const auto request = fields::Decode<Request>(bytes);
    if (request.ok()) (void)step(*request);
  }

  std::map<LeaseToken, ShardId> granted_;
};

}  // namespace

void FuzzMasterRequests(std::string_view bytes) {
  FuzzInput input(bytes);
  Master master;
  while (!input.empty()) {
    const uint64_t kind = input.Number(1);
    const Facts before(*master.core);
    master.Call(kind, input.Sized());
    master.Sync();
    Facts(*master.core).CheckGrewFrom(before);
  }
  // Whatever came, the journal has it, and can be gone on with.
  master.RestartAndCompare();
}

}  // namespace muster::testing
