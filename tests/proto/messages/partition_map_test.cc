#include "proto/messages/partition_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

PartitionEntry OwnedBy(uint32_t server) {
  return {.owner = ServerId(server), .epoch = OwnerEpoch(server + 1)};
}

ServerEndpoint At(uint32_t server, const std::string& address) {
  return {ServerId(server), ServerIncarnation(1), "ps", {{address}}};
}

TEST(PartitionMapTest, ChangesTakeThePlaceOfWhatWasAndLeaveTheRest) {
  const PartitionMap map{
      MapVersion(3), RestoreEpoch(1), {OwnedBy(0), OwnedBy(1)}, {At(0, "a"), At(1, "b")}};
  const PartitionMap after{MapVersion(7),
                           RestoreEpoch(2),
                           {OwnedBy(0), OwnedBy(2)},
                           {At(0, "a"), At(1, "c"), At(2, "d")}};
  EXPECT_EQ(WithChanges(map, {MapVersion(3),
                              MapVersion(7),
                              RestoreEpoch(2),
                              {{PartitionId(1), OwnedBy(2)}},
                              {At(2, "d"), At(1, "c")}}),
            after);
}

TEST(PartitionMapTest, ChangesOfWhatTheMapDoesNotHaveAreRefused) {
  const PartitionMap map{MapVersion(3), RestoreEpoch(1), {OwnedBy(0), OwnedBy(1)}, {}};
  PartitionMapChanges changes{MapVersion(3), MapVersion(4), RestoreEpoch(1), {}, {}};
  changes.partitions = {{PartitionId(1), OwnedBy(2)}};
  EXPECT_TRUE(WithChanges(map, changes).has_value());
  changes.partitions = {{PartitionId(2), OwnedBy(2)}};
  EXPECT_FALSE(WithChanges(map, changes).has_value());
  changes.partitions.clear();
  for (uint32_t s = 0; s < most::kServers; ++s) changes.servers.push_back(At(s, "a"));
  EXPECT_TRUE(WithChanges(map, changes).has_value());
  changes.servers.push_back(At(most::kServers, "a"));
  EXPECT_FALSE(WithChanges(map, changes).has_value());
}

}  // namespace
}  // namespace muster
