#include "kubernetes/client/watcher.h"

#include <gtest/gtest.h>

#include "kubernetes/model/api_error.h"
#include "tests/kubernetes/client/fake_api_server.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::FakeRequest;
using testing::FakeWire;
using ::testing::HasSubstr;

std::string Pod(const std::string& name, int version) {
  return R"({"metadata":{"name":")" + name + R"(","uid":"u-)" + name + R"(","resourceVersion":")" +
         std::to_string(version) + "\"}}";
}

std::string PodEvent(const std::string& type, const std::string& object) {
  return testing::Chunk(R"({"type":")" + type + R"(","object":)" + object + "}\n");
}

std::string PodList(const std::string& items, int version) {
  return testing::Answer(200, R"({"metadata":{"resourceVersion":")" + std::to_string(version) +
                                  R"("},"items":[)" + items + "]}");
}

/// Collects what a watcher says.
class Diary {
 public:
  void Write(const std::string& line) {
    const MutexLock lock(&mutex_);
    lines_.push_back(line);
    changed_.SignalAll();
  }
  std::vector<std::string> WaitFor(size_t count) {
    const MutexLock lock(&mutex_);
    while (lines_.size() < count) changed_.Wait(&mutex_);
    return lines_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_ MUSTER_GUARDED_BY(mutex_);
};

/// A server with a story: one handler for each request, in order; after the last, it says nothing.
class WatcherTest : public ::testing::Test {
 protected:
  using Step = std::function<void(FakeWire&)>;

  void Start(std::vector<Step> story, ClientOptions options = {}) {
    story_ = std::move(story);
    next_ = 0;
    server_ = std::make_unique<testing::FakeApiServer>([this](const FakeRequest&, FakeWire& wire) {
      const size_t step = next_.fetch_add(1);
      if (step < story_.size()) return story_[step](wire);
      wire.WaitForClose();
    });
    credentials_ = std::make_unique<CredentialSource>(server_->Access(), &clock_);
    client_ = std::make_unique<Client>(credentials_.get(), &clock_, options);
    watcher_ = std::make_unique<Watcher>(
        client_.get(), &clock_,
        WatcherOptions{
            .ns = "t",
            .on_changes =
                [this](const WatchCache::Changes& changes, const WatchCache::Objects& objects) {
                  std::string line;
                  for (const ObjectChange& change : changes) {
                    line += "+~-"[static_cast<size_t>(change.kind)] + change.name + " ";
                  }
                  diary_.Write(line + "of " + std::to_string(objects.size()));
                },
            .on_error =
                [this](const absl::Status& status, milliseconds) {
                  diary_.Write("error " + std::to_string(static_cast<int>(status.code())));
                }});
  }

  static Step Says(const std::string& bytes) {
    return [bytes](FakeWire& wire) { wire.Send(bytes); };
  }
  static Step Stays(const std::string& bytes) {
    return [bytes](FakeWire& wire) {
      wire.Send(bytes);
      wire.WaitForClose();
    };
  }
  static Step Cuts(const std::string& bytes) {
    return [bytes](FakeWire& wire) {
      wire.Send(bytes);
      wire.Cut();
    };
  }

  SystemClock clock_;
  Diary diary_;
  std::vector<Step> story_;
  std::atomic<size_t> next_{0};
  std::unique_ptr<testing::FakeApiServer> server_;
  std::unique_ptr<CredentialSource> credentials_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Watcher> watcher_;
};

TEST_F(WatcherTest, ListThenWatch) {
  Start({Says(PodList(Pod("a", 3), 5)),
         Stays(testing::ChunkedHead() + PodEvent("ADDED", Pod("b", 6)) +
               PodEvent("DELETED", Pod("a", 7)))});
  EXPECT_THAT(diary_.WaitFor(3), ElementsAre("+a of 1", "+b of 2", "-a of 1"));
  const auto seen = server_->requests();
  EXPECT_EQ(seen[0].target, "/api/v1/namespaces/t/pods?limit=500");
  EXPECT_THAT(seen[1].target, HasSubstr("resourceVersion=5"));
  watcher_->Apply(nlohmann::json::parse(Pod("c", 9)));
  EXPECT_EQ(diary_.WaitFor(4).back(), "+c of 2");
}

TEST_F(WatcherTest, AnEmptyListIsToldOnce) {
  Start({Says(PodList("", 5)), Says(testing::ChunkedHead() + testing::kLastChunk),
         Says(PodList("", 6)), Stays(testing::ChunkedHead() + PodEvent("ADDED", Pod("b", 7)))});
  EXPECT_THAT(diary_.WaitFor(2), ElementsAre("of 0", "+b of 1"));
}

TEST_F(WatcherTest, GoneInsideAWatchMeansANewList) {
  Start({Says(PodList(Pod("a", 3), 5)),
         Stays(testing::ChunkedHead() +
               PodEvent("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})")),
         Says(PodList(Pod("b", 8), 9)), Stays(testing::ChunkedHead())});
  // No error is told: nothing is wrong.
  EXPECT_THAT(diary_.WaitFor(2), ElementsAre("+a of 1", "-a +b of 1"));
}

TEST_F(WatcherTest, ABrokenWatchIsToldAndTheListFindsWhatWasMissed) {
  Start({Says(PodList(Pod("a", 3) + "," + Pod("b", 4), 5)),
         Cuts(testing::ChunkedHead() + PodEvent("MODIFIED", Pod("a", 6))),
         Says(PodList(Pod("a", 6), 9)), Stays(testing::ChunkedHead())});
  EXPECT_THAT(diary_.WaitFor(4), ElementsAre("+a +b of 2", "~a of 2", "error 14", "-b of 1"));
}

TEST_F(WatcherTest, AHangingServerIsLeft) {
  Start({Says(PodList("", 5)), Stays(testing::ChunkedHead()), Says(PodList(Pod("a", 6), 7)),
         [](FakeWire& wire) { wire.WaitForClose(); }},
        {.watch_silence_max = milliseconds(50)});
  const auto lines = diary_.WaitFor(3);
  EXPECT_EQ(lines[0], "of 0");
  EXPECT_EQ(lines[1], "error 4");
  EXPECT_EQ(lines[2], "+a of 1");
}

TEST_F(WatcherTest, EndsWhileAListOrAWatchHangs) {
  const auto hangs = [this](FakeWire& wire) {
    diary_.Write("asked");
    wire.WaitForClose();
  };
  Start({hangs}, {.request_deadline = std::chrono::hours(1)});
  diary_.WaitFor(1);
  watcher_.reset();
  Start({Says(PodList("", 5)), hangs}, {.watch_silence_max = std::chrono::hours(1)});
  diary_.WaitFor(3);
  watcher_.reset();
}

TEST_F(WatcherTest, ARefusedListIsAskedForAgain) {
  Start(
      {Says(testing::Answer(503, "not yet")), Says(PodList("", 5)), Stays(testing::ChunkedHead())});
  EXPECT_THAT(diary_.WaitFor(2), ElementsAre("error 14", "of 0"));
}

}  // namespace
}  // namespace muster::kubernetes
