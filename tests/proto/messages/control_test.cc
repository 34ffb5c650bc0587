#include "proto/messages/control.h"

#include <gtest/gtest.h>

#include "proto/control.pb.h"
#include "proto/fields/generated.h"
#include "proto/messages/worker_hello.h"
#include "tests/proto/fields/limit_checks.h"
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
    ::testing::Types<Pair<HelloRequest, v1::HelloRequest>, Pair<HelloResponse, v1::HelloResponse>,
                     Pair<RegisterTableRequest, v1::RegisterTableRequest>,
                     Pair<RegisterTableResponse, v1::RegisterTableResponse>,
                     Pair<WorkerExchangeRequest, v1::WorkerExchangeRequest>,
                     Pair<WorkerExchangeReply, v1::WorkerExchangeReply>,
                     Pair<GroupExchangeRequest, v1::GroupExchangeRequest>,
                     Pair<GroupExchangeReply, v1::GroupExchangeReply>,
                     Pair<RegisterServerRequest, v1::RegisterServerRequest>,
                     Pair<RegisterServerReply, v1::RegisterServerReply>,
                     Pair<ServerExchangeRequest, v1::ServerExchangeRequest>,
                     Pair<ServerExchangeReply, v1::ServerExchangeReply>>;

template <typename Message>
class ControlTest : public ::testing::Test {};
TYPED_TEST_SUITE(ControlTest, Messages);

TYPED_TEST(ControlTest, TheListIsTheMessage) {
  testing::ExpectSame(testing::Listing::All<typename TypeParam::S>(), TypeParam::descriptor(),
                      fields::Side::kPeer, {});
}
TYPED_TEST(ControlTest, EveryFieldGoesThereAndBack) {
  testing::ExpectRoundTrip<typename TypeParam::S>(TypeParam::descriptor(), fields::Side::kPeer, {});
}
TYPED_TEST(ControlTest, DamagedBytesAreSurvived) {
  testing::ExpectDamageIsSurvived<typename TypeParam::S>(fields::Side::kPeer);
}
TYPED_TEST(ControlTest, EveryLimitIsTheLastThatIsTaken) {
  testing::LimitChecks<typename TypeParam::S>(TypeParam::descriptor()).CheckAll();
}

}  // namespace
}  // namespace muster
