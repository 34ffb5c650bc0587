#include "worker_sdk/core/request_parts.h"

#include "tests/worker_sdk/core/part_sender_fixture.h"

namespace muster::sdk {
namespace {

TEST(RequestPartsTest, PartsComeInTheOrderOfTheItemsWithTheirGroups) {
  auto batch = std::make_shared<RowBatch>();
  batch->plan.groups = {{.table = TableId(1), .keys = 4},
                        {.table = TableId(2), .keys = 5},
                        {.table = TableId(1), .keys = 6}};
  batch->plan.parts = {{.partition = PartitionId(7), .group_begin = 0, .group_count = 2},
                       {.partition = PartitionId(9), .group_begin = 2, .group_count = 1},
                       {.partition = PartitionId(11), .group_begin = 3, .group_count = 0}};
  SendRequest request;
  request.batch = batch;
  request.items = {{.part = 1, .epoch = OwnerEpoch(3)},
                   {.part = 2, .epoch = OwnerEpoch(5)},
                   {.part = 0, .epoch = OwnerEpoch(4)}};
  wire::Parts expected(9, 3, {{.table = 1, .keys = 6}});
  expected.Add(11, 5);
  expected.Add(7, 4, {{.table = 1, .keys = 4}, {.table = 2, .keys = 5}});
  wire::Parts parts(9, 9, {{.table = 9}});
  WireParts(request, &parts);
  EXPECT_EQ(parts, expected);
}

TEST(RequestPartsTest, EveryFieldOfAPushHasItsPlace) {
  const PushIdentity push{.shard = {DatasetId(1), EpochIndex(2), ShardIndex(3)},
                          .minibatch = MinibatchIndex(4),
                          .token = LeaseToken::FromValue(5),
                          .run = RunNumber(6),
                          .step = 7,
                          .restore_epoch = {}};
  EXPECT_EQ(WireIdentity(push), (wire::PushIdentity{.dataset = 1,
                                                    .epoch = 2,
                                                    .shard_index = 3,
                                                    .minibatch = 4,
                                                    .run = 6,
                                                    .token = 5,
                                                    .step = 7}));
}

}  // namespace
}  // namespace muster::sdk
