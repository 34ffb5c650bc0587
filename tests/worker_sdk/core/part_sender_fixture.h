#pragma once

#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker_sdk/core/core_fixture.h"
#include "worker_sdk/core/part_sender.h"

/// One sender and the answers to it.
namespace muster::sdk {
namespace part_sender_test {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::PartCode;

inline const PushIdentity kPush{{DatasetId(0), EpochIndex(0), ShardIndex(3)},
                                MinibatchIndex(1),
                                LeaseToken::FromValue(77),
                                RunNumber(0),
                                5,
                                RestoreEpoch(2)};

class PartSenderTest : public ::testing::Test {
 protected:
  void GiveMap(const PartitionMap& map) {
    sender_.SetMap(std::make_shared<const PartitionMap>(map), now_);
  }
  PartSender::Outcome Answer(const SendRequest& request, PartCode code) {
    std::vector<wire::PartReply> replies;
    for (const auto& item : request.items) {
      replies.push_back({request.batch->plan.parts[item.part].partition.value(), code, false});
    }
    std::shared_ptr<const float[]> rows;
    if (!request.push) rows = std::make_shared<float[]>(request.floats);
    return sender_.OnReply(request.id, replies, std::move(rows), now_);
  }
  PartSender sender_;
  TimePoint now_{std::chrono::seconds(100)};
};

}  // namespace part_sender_test
}  // namespace muster::sdk
