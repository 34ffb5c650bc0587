#include <gmock/gmock.h>

#include "base/failpoint.h"
#include "tests/worker_sdk/session/session_fixture.h"

namespace muster {
namespace {

#if MUSTER_WITH_FAILPOINTS
/// A session with one shard of a predict dataset, whose place is a folder.
class OutputSessionTest : public SessionTest {
 protected:
  OutputSessionTest() {
    master_.AddNumbers(40, 6, 2);
    master_.EndWhenDone();
    master_.Plant({.lie = [this](WorkerExchangeReply* reply) {
      for (ShardGrant& grant : reply->grants) {
        grant.work.mode = DatasetMode::kPredict;
        grant.work.output = place_;
      }
    }});
  }
  ~OutputSessionTest() override { EXPECT_TRUE(ArmFailpoints({}).ok()); }

  static void Predict(Session& session) {
    while (std::optional<Shard> shard = session.NextShard()) {
      for (Minibatch& batch : shard->Minibatches()) batch.Output("x");
    }
  }

  const std::string place_ = dir_.File("outputs");
};

TEST_F(OutputSessionTest, AFullDiskFailsNoShardAndTheMasterHearsOfItUntilItIsOver) {
  ASSERT_TRUE(ArmFailpoints({.actions = "owner.before-link=full@2"}).ok());  // 1 is the owner
  Session session = Connect();
  Predict(session);
  EXPECT_EQ(session.Finish(), 0);
  ASSERT_EQ(master_.returned.size(), 1u);
  EXPECT_FALSE(master_.returned[0].failed);
  EXPECT_EQ(master_.returned[0].hand_back, HandBack::kShortage);
  EXPECT_THAT(master_.returned[0].reason, HasSubstr("its outputs could not be written"));
  EXPECT_THAT(master_.unwritten, ElementsAre(HasSubstr("No space left"), ""));
  EXPECT_EQ(master_.done.size(), 1u);
  EXPECT_EQ(ReadFile(place_ + "/range-00000000.out", 10).value_or("none"), "xxx");
}
#endif

}  // namespace
}  // namespace muster
