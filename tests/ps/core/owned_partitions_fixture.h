#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/core/owned_partitions.h"
#include "tests/ps/core/whole_requests.h"
#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace owned_partitions_test {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::PartCode;

constexpr PartitionId kP{2};
constexpr uint32_t kTable = 1;

inline SnapshotNumber Number(uint64_t count) {
  return {MasterIncarnation(1), count};
}
inline LeaseToken Token(uint64_t count) {
  return {MasterIncarnation(1), count};
}
inline TableSpec SumTable(uint32_t id = kTable, uint32_t dim = 2) {
  TableSpec table;
  table.id = TableId(id);
  table.name = "t";
  table.dim = dim;
  table.optimizer = SumSpec{};
  return table;
}

/// Lane 0 of 2 in a job of 6 partitions (so it has 0, 2 and 4), with one table of width 2.
class OwnedPartitionsTest : public ::testing::Test {
 protected:
  OwnedPartitionsTest() { owned_.AddTable(SumTable()); }

  void Apply(LaneCommands commands) { owned_.Apply(commands); }
  void Own(OwnCommand command) {
    LaneCommands commands;
    commands.owns.push_back(std::move(command));
    Apply(commands);
  }
  /// Epoch `epoch` of an empty partition 2.
  void OwnEmpty(uint64_t epoch) { Own({kP, OwnerEpoch(epoch), OwnerEpoch(epoch), {}, true, {}}); }
  void OwnFromSnapshot(uint64_t epoch) { Own(FromSnapshot(epoch)); }
  static OwnCommand FromSnapshot(uint64_t epoch) {
    return {kP,
            OwnerEpoch(epoch),
            OwnerEpoch(epoch),
            {},
            true,
            {Number(5), DoneSeq(3), {{"file", 10}}}};
  }
  void Ask(uint64_t number, uint64_t cut, uint64_t epoch, uint64_t sequence = 0) {
    LaneCommands commands;
    commands.sequence = sequence;
    commands.snapshots.push_back({kP, OwnerEpoch(epoch), DoneSeq(cut), Number(number)});
    Apply(commands);
  }
  void Accept(uint64_t number) {
    LaneCommands commands;
    commands.accepted.push_back({kP, Number(number)});
    Apply(commands);
  }
  void Forget(uint64_t floor) {
    LaneCommands commands;
    auto forget = std::make_shared<ForgetState>();
    forget->version = 1;
    forget->floor = Token(floor);
    commands.forget = forget;
    Apply(commands);
  }

  /// Pushes `value` to both columns of row `key` of partition 2.
  wire::PartReply Push(uint64_t epoch, uint64_t key, float value, uint32_t minibatch = 0,
                       uint64_t token = 9) {
    return PushTo(kP.value(), epoch, key, value, minibatch, token);
  }
  wire::PartReply PushTo(uint32_t partition, uint64_t epoch, uint64_t key, float value,
                         uint32_t minibatch = 0, uint64_t token = 9) {
    const wire::PushIdentity push{.minibatch = minibatch, .token = Token(token).value()};
    const wire::Parts parts(partition, epoch, {{.table = kTable, .keys = 1}});
    const std::vector<float> values = {value, value};
    PushReply reply;
    progress_ = PushWhole({push, parts, {&key, 1}, values}, &owned_, &reply);
    text_ = reply.text;
    return reply.parts.at(0);
  }
  PullReply Pull(uint64_t epoch, const std::vector<uint64_t>& keys, uint32_t table = kTable) {
    const wire::Parts parts(kP.value(), epoch,
                            {{.table = table, .keys = static_cast<uint32_t>(keys.size())}});
    PullReply reply;
    progress_ = PullWhole({parts, keys}, &owned_, &reply);
    return reply;
  }
  float Row(uint64_t epoch, uint64_t key) {
    PullReply reply = Pull(epoch, {key});
    EXPECT_EQ(reply.parts.at(0).code, PartCode::kOk);
    return reply.values.size() == 8 ? reply.values.floats()[0] : -1;
  }
  /// A partition as the loader would build it: row 7 is {70, 70}.
  static std::unique_ptr<Partition> LoadedPartition() {
    auto partition = std::make_unique<Partition>(kP, 1);
    partition->AddTable(SumTable());
    const uint64_t key = 7;
    const std::vector<float> values = {70, 70};
    Part part;
    part.token = Token(1);
    part.groups = {{TableId(kTable), {&key, 1}, values}};
    EXPECT_EQ(partition->Apply(part).code, ApplyCode::kApplied);
    return partition;
  }
  /// Writes and reports one snapshot that is then accepted.
  void SnapshotAccepted(uint64_t number, uint64_t epoch) {
    Ask(number, 1, epoch);
    ASSERT_TRUE(NextSnapshot(now_).has_value());
    owned_.Written(kP, Number(number), SnapshotFile{"f" + std::to_string(number), 100}, now_);
    ASSERT_THAT(owned_.Report(++sequence_).snapshots, SizeIs(1));
    Accept(number);
  }

  std::optional<SnapshotJob> NextSnapshot(TimePoint now) { return ps::NextSnapshot(&owned_, now); }
  const Partition* Served(PartitionId partition) { return ps::Served(owned_, partition); }
  /// Does what the background thread does with fills.
  static void RunFills(OwnedPartitions* owned) {
    for (const FillJob& job : owned->TakeFills()) {
      owned->Filled(job, Table::Filled(job.table, 1, job.partition, *job.rows));
    }
  }

  OwnedPartitions owned_{{.job_seed = 1,
                          .partition_count = 6,
                          .lane = 0,
                          .lane_count = 2,
                          .retry_pause = milliseconds(100)}};
  TimePoint now_{std::chrono::seconds(10)};
  uint64_t sequence_ = 0;
  std::string text_;
  RequestProgress progress_;  // of the newest request
};

}  // namespace owned_partitions_test
}  // namespace muster::ps
