#include "proto/status/job_status.h"

#include <gtest/gtest.h>

#include "proto/admin.pb.h"
#include "proto/fields/generated.h"
#include "proto/status/partition_status.h"
#include "proto/status/shard_status.h"
#include "tests/proto/fields/listing.h"
#include "tests/proto/fields/message_checks.h"

namespace muster {
namespace {

template <typename Struct, typename Proto>
struct Pair {
  using S = Struct;
  static const google::protobuf::Descriptor& descriptor() { return *Proto::descriptor(); }
};
using Messages =
    ::testing::Types<Pair<JobStatus, v1::JobStatus>, Pair<ShardPage, v1::ListShardsResponse>,
                     Pair<ShardMap, v1::GetShardMapResponse>,
                     Pair<MasterEvents, v1::ListEventsResponse>,
                     Pair<PartitionList, v1::ListPartitionsResponse>>;

template <typename Message>
class JobStatusTest : public ::testing::Test {};
TYPED_TEST_SUITE(JobStatusTest, Messages);

TYPED_TEST(JobStatusTest, TheListIsTheMessage) {
  testing::ExpectSame(testing::Listing::All<typename TypeParam::S>(), TypeParam::descriptor(),
                      fields::Side::kPeer, {});
}
TYPED_TEST(JobStatusTest, EveryFieldGoesThereAndBack) {
  testing::ExpectRoundTrip<typename TypeParam::S>(TypeParam::descriptor(), fields::Side::kPeer, {});
}
TYPED_TEST(JobStatusTest, DamagedBytesAreSurvived) {
  testing::ExpectDamageIsSurvived<typename TypeParam::S>(fields::Side::kPeer);
}

}  // namespace
}  // namespace muster
