#include "master/core/servers/map_teller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "proto/fields/decode.h"
#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using ::testing::IsEmpty;
using testing::PartsFixture;
using ::testing::SizeIs;

constexpr MapVersion kNone;

/// Two partitions, each with a server of its own.
class MapTellerTest : public ::testing::Test, protected PartsFixture {
 protected:
  MapTellerTest() { options.servers = 2; }
  void Begin() {
    Start();
    teller.emplace(&books(), &partitions());
  }
  PartitionTable& partitions() { return books().partitions; }
  void Come(uint32_t server, uint64_t nonce, const std::string& address = "unix:/x") {
    ASSERT_TRUE(
        servers()
            .Register({NodeTable::ServerName(ServerId(server)), nonce, {{address}}, {}}, At())
            .ok());
  }
  /// A worker's map after it has received the missing changes.
  PartitionMap Tell(const PartitionMap& map) {
    const std::shared_ptr<const MapNews> news = teller->For(map.version, map.version);
    if (news == nullptr) return map;
    if (news->as_reply().map.has_value()) return *news->as_reply().map;
    EXPECT_EQ(news->as_reply().map_changes->base, map.version);
    return WithChanges(map, *news->as_reply().map_changes).value();
  }
  PartitionMap Whole() { return *teller->For(kNone, kNone)->as_reply().map; }
  /// The changes that a worker is told who has that version.
  std::optional<PartitionMapChanges> ChangesSince(MapVersion version) {
    const std::shared_ptr<const MapNews> news = teller->For(version, version);
    return news == nullptr ? std::nullopt : news->as_reply().map_changes;
  }
  /// `state` is what the next master begins with.
  void JournalAll() {
    state.meta.emplace();
    state.meta->map_version = partitions().version();
    state.meta->restore_epoch = partitions().restore_epoch();
    std::vector<Mutation> mutations;
    partitions().Collect(&mutations);
    books().nodes.Collect(&mutations);
    for (const Mutation& mutation : mutations) Apply(mutation, &state);
  }

  std::optional<MapTeller> teller;
};

TEST_F(MapTellerTest, AWorkerIsToldWhatChangedSinceItsVersion) {
  Begin();
  Come(0, 1);
  Come(1, 2);
  const PartitionMap map = Whole();
  EXPECT_THAT(map.servers, SizeIs(2));
  EXPECT_EQ(teller->For(map.version, map.version), nullptr) << "it has this one";
  Come(1, 3, "unix:/y");
  const std::optional<PartitionMapChanges> changes = ChangesSince(map.version);
  ASSERT_TRUE(changes.has_value());
  ASSERT_THAT(changes->partitions, SizeIs(1)) << "the other one has its owner still";
  EXPECT_EQ(partitions().entry(changes->partitions[0].partition).owner, ServerId(1));
  ASSERT_THAT(changes->servers, SizeIs(1));
  EXPECT_EQ(changes->servers[0].lanes[0][0], "unix:/y");
  EXPECT_EQ(Tell(map), Whole());
  const PartitionMap second = Whole();
  Come(1, 3, "unix:/z");
  EXPECT_THAT(ChangesSince(second.version)->partitions, IsEmpty()) << "it is the same process";
  EXPECT_EQ(Tell(second), Whole());
  EXPECT_EQ(Tell(map), Whole()) << "both changes at once";
}

TEST_F(MapTellerTest, WhoAsksForTheWholeMapGetsIt) {
  Begin();
  Come(0, 1);
  const MapVersion version = Whole().version;
  Come(1, 2);
  EXPECT_TRUE(teller->For(version, kNone)->as_reply().map.has_value());
  EXPECT_TRUE(teller->For(version, version)->as_reply().map_changes.has_value());
  EXPECT_TRUE(teller->For(version, partitions().version().Next())->as_reply().map.has_value())
      << "no such version was ever told";
}

TEST_F(MapTellerTest, OneValueIsForAllWhoComeFromTheSameVersion) {
  Begin();
  Come(0, 1);
  const MapVersion version = Whole().version;
  Come(1, 2);
  const std::shared_ptr<const MapNews> changes = teller->For(version, version);
  EXPECT_EQ(teller->For(version, version), changes);
  EXPECT_EQ(teller->For(kNone, kNone), teller->For(kNone, kNone));
  EXPECT_NE(teller->For(kNone, kNone), changes);
  const auto decoded = fields::Decode<WorkerExchangeReply>(changes->Encoded());
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->map_changes, changes->as_reply().map_changes);
  EXPECT_FALSE(decoded->map.has_value());
  EXPECT_EQ(teller->For(version, version)->Encoded().data(), changes->Encoded().data())
      << "two workers share the bytes";
  Come(1, 3);
  EXPECT_NE(teller->For(version, version), changes) << "there is more to tell";
}

TEST_F(MapTellerTest, ManyVersionsAreToldAtATime) {
  Begin();
  std::vector<PartitionMap> maps;
  for (uint64_t nonce = 1; nonce <= 200; ++nonce) {
    Come(nonce % 2, nonce);
    maps.push_back(Whole());
  }
  for (const PartitionMap& map : maps) EXPECT_EQ(Tell(map), maps.back());
}

TEST_F(MapTellerTest, ABurstOfRegistrationsIsOneVersion) {
  Begin();
  const PartitionMap before = Whole();
  Come(0, 1);
  Come(1, 2);
  EXPECT_EQ(partitions().version(), before.version.Next());
  EXPECT_EQ(Tell(before), Whole());
  Come(1, 3);
  EXPECT_EQ(partitions().version(), before.version.Next().Next())
      << "the one before means what was told";
}

TEST_F(MapTellerTest, AfterARestartOnlyWhatChangedSinceIsKnown) {
  Begin();
  Come(0, 1);
  const PartitionMap old = Whole();
  Come(1, 2);
  const PartitionMap last = Whole();
  JournalAll();
  Books restarted(options, MasterIncarnation(3), &state, now);
  teller.emplace(&restarted, &restarted.partitions);
  EXPECT_EQ(teller->For(last.version, last.version), nullptr) << "nothing has changed";
  EXPECT_EQ(*teller->For(old.version, old.version)->as_reply().map, last);
  restarted.partitions.ServerReplaced(ServerId(1), ServerIncarnation(50));
  EXPECT_GT(restarted.partitions.version(), last.version) << "it may have been told";
  EXPECT_TRUE(ChangesSince(last.version).has_value());
  EXPECT_FALSE(ChangesSince(old.version).has_value());
  EXPECT_EQ(Tell(old), Whole());
  EXPECT_EQ(Tell(last), Whole());
}

TEST_F(MapTellerTest, WhoComesFromAnEarlierRunIsToldTheWholeMap) {
  Begin();
  Come(0, 1);
  Come(1, 2);
  const PartitionMap old = Whole();
  ASSERT_THAT(old.servers, SizeIs(2));
  JournalAll();
  Books next_run(options, MasterIncarnation(3), &state, now);
  next_run.nodes.BeginRun();
  next_run.partitions.BeginRun(options.servers);
  teller.emplace(&next_run, &next_run.partitions);
  const std::shared_ptr<const MapNews> news = teller->For(old.version, old.version);
  ASSERT_NE(news, nullptr);
  ASSERT_TRUE(news->as_reply().map.has_value()) << "changes cannot say that an address is gone";
  EXPECT_THAT(news->as_reply().map->servers, IsEmpty());
}

}  // namespace
}  // namespace muster
