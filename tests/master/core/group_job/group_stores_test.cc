#include "master/core/group_job/group_stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/master/core/parts_fixture.h"

namespace muster {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GroupStoresTest : public ::testing::Test, protected testing::PartsFixture {
 protected:
  GroupStoresTest() {
    options.group.emplace();
    options.restore_timeout = seconds(60);
    options.snapshot_directory = "/snapshots";
    Start();
    stores.emplace(&books(), &life());
  }
  /// A report a second.
  void Report(const StoredStates& said, int times = 1) {
    for (int i = 0; i < times; ++i) {
      Pass(seconds(1));
      stores->Take(said, At());
    }
  }
  static StoredStates Unreadable(const std::string& error, uint32_t pieces = 1) {
    return {
        .unreadable = UnreadableState{pieces, error}, .unreadable_by = "worker-1", .forms = true};
  }
  static StoredStates Unwritten(const std::string& error, uint64_t checkpoint) {
    return {.unwritten = error, .unwritten_by = "worker-0", .checkpoint = StepNumber(checkpoint)};
  }
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    for (const auto& [number, event] : books().events().events()) {
      events.push_back(event.kind + " " + event.node + ": " + event.text);
    }
    return events;
  }
  std::optional<GroupStores> stores;
};

TEST_F(GroupStoresTest, AStateThatNobodyCanReadEndsTheJob) {
  Report(Unreadable("cannot open /snapshots/group/x"));
  EXPECT_THAT(Events(), ElementsAre("restore-error worker-1: 1 piece of the state of the group "
                                    "cannot be read: cannot open /snapshots/group/x; it tries "
                                    "again, and the group waits"));
  EXPECT_THAT(stores->ReadText(), HasSubstr("cannot open /snapshots/group/x"));
  Report(Unreadable("cannot open /snapshots/group/x"), 59);
  EXPECT_EQ(life().state(), JobState::kRunning);
  EXPECT_FALSE(stores->unrestorable());
  Report(Unreadable("cannot open /snapshots/group/x"));
  EXPECT_EQ(life().state(), JobState::kFailed);
  EXPECT_TRUE(stores->unrestorable());
  EXPECT_THAT(life().reason(),
              AllOf(HasSubstr("worker-1: 1 piece"), HasSubstr("/snapshots/group/x"),
                    HasSubstr("60 s"), HasSubstr("Put the files of /snapshots")));
}

TEST_F(GroupStoresTest, TimeInWhichAProcessMayReadItDoesNotCount) {
  Report(Unreadable("x"), 50);
  Report({.forms = true}, 100);
  EXPECT_THAT(stores->ReadText(), HasSubstr("cannot be read: x")) << "nobody has it yet";
  EXPECT_EQ(life().state(), JobState::kRunning);
  Report({.forms = false});
  EXPECT_EQ(stores->ReadText(), "");
  EXPECT_EQ(Events().back(), "restored : the group has its state again");
  Report(Unreadable("x"), 50);
  EXPECT_EQ(life().state(), JobState::kRunning) << "it begins anew";
}

TEST_F(GroupStoresTest, APieceThatIsReadCountsAsGettingOn) {
  Report(Unreadable("x", 3), 50);
  Report(Unreadable("x", 2), 50);
  Report(Unreadable("x", 1), 50);
  EXPECT_EQ(life().state(), JobState::kRunning);
}

TEST_F(GroupStoresTest, AFullDiskIsToldOncePerTextUntilSomethingIsStored) {
  Report(Unwritten("no space", 4), 100);
  EXPECT_THAT(Events(), ElementsAre("snapshot-error worker-0: no space; no shard is COMMITTED "
                                    "until this is fixed"));
  EXPECT_THAT(stores->WriteText(now),
              AllOf(HasSubstr("1:3"), HasSubstr("worker-0"), HasSubstr("no space")));
  Report(Unwritten("no device", 4));
  Report(Unwritten("", 4), 100);
  EXPECT_NE(stores->WriteText(now), "") << "the next try may fail, too";
  Report(Unwritten("", 5));
  EXPECT_EQ(stores->WriteText(now), "");
  EXPECT_THAT(Events(), ElementsAre(HasSubstr("no space"), HasSubstr("no device"),
                                    HasSubstr("snapshots-work-again")));
  EXPECT_EQ(life().state(), JobState::kRunning);
}

TEST_F(GroupStoresTest, NothingIsSaidOfAGroupThatIsWell) {
  Report({.forms = true});
  Report({.checkpoint = StepNumber(3)}, 100);
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_EQ(stores->ReadText() + stores->WriteText(now), "");
}

}  // namespace
}  // namespace muster
