#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "base/mutex.h"
#include "kubernetes/client/watcher.h"
#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/pod_state.h"
#include "tests/kubernetes/live/plane.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AskPlane;
using ::testing::Contains;
using testing::PodRunning;

class WatchLiveTest : public testing::LiveTest {
 protected:
  void StartWatcher() {
    watcher_ = std::make_unique<Watcher>(
        client_.get(), &clock_,
        WatcherOptions{.ns = ns_,
                       .on_changes =
                           [this](const WatchCache::Changes& changes, const WatchCache::Objects&) {
                             for (const ObjectChange& change : changes) Note(change);
                             Say("told");
                           },
                       .on_error = [this](const absl::Status&, milliseconds) { Say("error"); }});
  }
  void TearDown() override {
    watcher_.reset();
    testing::LiveTest::TearDown();
  }

  /// Waits until the watcher has said `word`: "NAME STAGE", "NAME gone", "told", "error".
  void WaitFor(const std::string& word) {
    const TimePoint end = clock_.Now() + testing::kClusterPatience;
    const MutexLock lock(&mutex_);
    while (std::find(said_.begin(), said_.end(), word) == said_.end()) {
      ASSERT_LT(clock_.Now(), end) << "never said: " << word;
      changed_.WaitFor(&mutex_, seconds(1));
    }
  }

 private:
  void Note(const ObjectChange& change) {
    const PodState state = ReadPodState(*change.object);
    Say(change.name + " " +
        (change.kind == ObjectChange::Kind::kDeleted ? "gone" : std::string(ToText(state.stage))));
  }
  void Say(const std::string& word) {
    const MutexLock lock(&mutex_);
    said_.push_back(word);
    changed_.SignalAll();
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> said_ MUSTER_GUARDED_BY(mutex_);
  std::unique_ptr<Watcher> watcher_;
};

TEST_F(WatchLiveTest, TheLifeOfAPod) {
  StartWatcher();
  WaitFor("told");
  const nlohmann::json made = Create(PodRunning("a", "exit 0"));
  WaitFor("a succeeded");
  ASSERT_THAT(client_->Delete(Pod("a"), {.uid = IdentityOf(made).uid}), testing::IsOk());
  WaitFor("a gone");
}

TEST_F(WatchLiveTest, TheServerEndsAWatch) {
  Client brief(credentials_.get(), &clock_, {.watch_length = seconds(1)});
  MUSTER_ASSERT_OK_AND_ASSIGN(const ObjectList list, brief.List(Resource::kPods, ns_, {}));
  EXPECT_THAT(brief.Watch(Resource::kPods, ns_, {}, list.version,
                          [](const nlohmann::json&) { return absl::OkStatus(); }),
              testing::IsOk());
}

TEST_F(WatchLiveTest, TheApiServerDiesAndAPodMeanwhile) {
  Create(PodRunning("stays", "sleep 1000"));
  Create(PodRunning("dies", "sleep 1000"));
  const std::string gone = IdentityOf(Create(PodRunning("goes", "sleep 1000"))).uid;
  StartWatcher();
  for (const char* name : {"stays", "dies", "goes"}) WaitFor(std::string(name) + " running");
  const int process = ProcessOf("dies");
  ASSERT_GT(process, 0);
  // What the server keeps of old versions in its memory goes with it.
  AskPlane("compact");
  AskPlane("kill apiserver");
  WaitFor("error");
  ASSERT_EQ(::kill(-process, SIGKILL), 0);
  AskPlane("again apiserver");
  WaitFor("dies failed");
  ASSERT_THAT(client_->Delete(Pod("goes"), {.uid = gone, .grace = seconds(0)}), testing::IsOk());
  WaitFor("goes gone");
  EXPECT_EQ(ReadPodState(*client_->Get(Pod("stays"))).stage, PodStage::kRunning);

  WatchCache cache;
  const absl::Status status =
      client_->Watch(Resource::kPods, ns_, {}, "1",
                     [&](const nlohmann::json& event) { return cache.Received(event).status(); });
  EXPECT_EQ(KindOf(status), ApiErrorKind::kGone) << status;
}

}  // namespace
}  // namespace muster::kubernetes
