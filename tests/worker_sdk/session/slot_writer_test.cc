#include "worker_sdk/session/slot_writer.h"

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::sdk {
namespace {

TEST(SlotWriterTest, TheFileTellsWhatIsBeingComputed) {
  muster::testing::TempDir dir;
  auto slot = [&] { return *ParseSlot(*ReadFile(dir.File("slot"), 100)); };
  LeaseToken a = LeaseToken::FromValue(5), b = LeaseToken::FromValue(6);
  {
    SlotWriter writer(dir.File("slot"), 77);
    EXPECT_EQ(slot(), (SlotRecord{77, {}, 0, false}));
    writer.Enter(a);
    writer.Minibatch(a);
    writer.Minibatch(a);
    EXPECT_EQ(slot(), (SlotRecord{77, a, 2, false}));
    writer.Leave(b);  // another loop's shard
    EXPECT_EQ(slot().computing_token, a);
    writer.Minibatch(b);
    EXPECT_EQ(slot(), (SlotRecord{77, b, 1, false}));
    writer.Leave(b);
    writer.End();
  }
  EXPECT_EQ(slot().computing_token, LeaseToken());
  EXPECT_TRUE(slot().ended);
}

TEST(SlotWriterTest, WithoutAFileNothingHappens) {
  SlotWriter none("", 1);
  none.Enter(LeaseToken::FromValue(5));
  SlotWriter impossible("/nowhere/slot", 1);
  impossible.Enter(LeaseToken::FromValue(5));
  impossible.End();
}

}  // namespace
}  // namespace muster::sdk
