// Which pods are of the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/pods/pod_book.h"
#include "tests/kubernetes/pods/pod_book_fixture.h"

namespace muster::kubernetes {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kNext;
using testing::kPod;
using testing::PodBookTest;
using testing::ScriptedBook;
using ::testing::SizeIs;

TEST_F(PodBookTest, AJobThatIsDeletedWithoutItsPodsLeavesOrphans) {
  StartRunning();
  EXPECT_FALSE(book().orphaned());
  const auto look = [this] {
    host_.Settle();
    return book().orphaned();
  };
  cluster_.Change(kPod, [](nlohmann::json* pod) { (*pod)["metadata"].erase("ownerReferences"); });
  EXPECT_FALSE(look()) << "the Job still owns its own pod";
  cluster_.job_is_there = false;
  host_.Pass(seconds(20));
  EXPECT_TRUE(look());
  EXPECT_TRUE(IsThere(kPod)) << "it may hand over first";
  EXPECT_TRUE(book().IsRunning("worker-0"));
  ScriptedBook next(&cluster_);
  next.Find();
  next.Settle();
  EXPECT_TRUE(next.book().orphaned()) << "seen by another scaler";
}

// Anybody who may create pods can do these.

TEST_F(PodBookTest, ACopyOfAPodIsNotOurs) {
  StartRunning();
  nlohmann::json copy = cluster_.pods().at(kPod);
  copy["metadata"].erase("ownerReferences");
  copy["metadata"]["name"] = "copy";
  cluster_.Create(copy);
  copy["metadata"]["name"] = "another-copy";
  copy["metadata"]["labels"]["muster/start"] = "7";
  cluster_.Create(copy);
  copy["metadata"]["name"] = kNext;
  copy["metadata"]["labels"]["muster/start"] = "2";
  cluster_.Create(copy);
  host_.Settle();
  host_.Pass(seconds(1000));
  EXPECT_FALSE(book().orphaned()) << "the Job is there";
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_TRUE(book().IsRunning("worker-0"));
  EXPECT_EQ(book().PodOf("worker-0")->name, kPod);
  for (const char* const name : {kPod, "copy", "another-copy", kNext}) {
    EXPECT_FALSE(cluster_.pods().at(name)["metadata"].contains("deletionTimestamp")) << name;
  }
  ScriptedBook next(&cluster_);
  EXPECT_THAT(next.Find(), ElementsAre(FoundNode{"worker-0", 1, true}));
  next.Settle();
  EXPECT_FALSE(next.book().orphaned());
}

TEST_F(PodBookTest, ACopyThatHasTheNameOfTheNextStartIsNamedAndNotTouched) {
  StartRunning();
  nlohmann::json copy = cluster_.pods().at(kPod);
  copy["metadata"].erase("ownerReferences");
  copy["metadata"]["name"] = kNext;
  copy["metadata"]["labels"]["muster/start"] = "2";
  cluster_.Create(copy);
  cluster_.End(kPod, 3);
  host_.Settle();
  host_.Reports();
  book().Release("worker-0", host_.now);
  Start(2);
  EXPECT_THAT(Told(), ElementsAre(HasSubstr("which its Job does not own")));
  EXPECT_FALSE(cluster_.pods().at(kNext)["metadata"].contains("deletionTimestamp"));
}

TEST_F(PodBookTest, LabelsThatChangeMoveNoPod) {
  StartRunning();
  cluster_.Change(kPod,
                  [](nlohmann::json* pod) { (*pod)["metadata"]["labels"]["muster/start"] = "7"; });
  host_.Settle();
  EXPECT_TRUE(book().IsRunning("worker-0"));
  cluster_.Remove(kPod);
  host_.Settle();
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGKILL disruption 5"));
}

TEST_F(PodBookTest, AnotherPodOfThatNameWasSeenBeforeTheEndOfTheFirst) {
  StartRunning();
  PodFacts other = book().PodsOfNode("worker-0").front();
  other.uid = "another";
  other.ran = false;
  other.stage = PodFacts::Stage::kWaiting;
  book().Seen(other, host_.now);
  EXPECT_THAT(Told(), ElementsAre("exit worker-0 SIGKILL disruption 5"));
  book().Gone(other, host_.now);
  EXPECT_THAT(book().PodsOfNode("worker-0"), IsEmpty());
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(PodBookTest, NothingIsKnownOfAnotherPodOfThatName) {
  StartRunning();
  cluster_.Disrupt(kPod, "PreemptionByScheduler");
  cluster_.End(kPod, 3);
  host_.Settle();
  PodFacts other = book().PodsOfNode("worker-0").front();
  ASSERT_TRUE(other.ran);
  ASSERT_NE(other.disruption, Disruption::kNone);
  other = {.name = other.name,
           .uid = "another",
           .job = other.job,
           .run = other.run,
           .node = other.node,
           .start = other.start,
           .owned = true};
  book().Seen(other, host_.now);
  ASSERT_THAT(book().PodsOfNode("worker-0"), SizeIs(1));
  const PodFacts facts = book().PodsOfNode("worker-0").front();
  EXPECT_EQ(facts.uid, "another");
  EXPECT_FALSE(facts.ran);
  EXPECT_EQ(facts.disruption, Disruption::kNone);
}

}  // namespace
}  // namespace muster::kubernetes
