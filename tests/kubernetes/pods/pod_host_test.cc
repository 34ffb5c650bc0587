#include "kubernetes/pods/pod_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <thread>

#include "kubernetes/model/json_access.h"
#include "tests/kubernetes/client/fake_api_server.h"
#include "tests/kubernetes/pods/model_cluster.h"
#include "tests/kubernetes/pods/scripted_book.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using Json = nlohmann::json;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::_;
using ::testing::ElementsAre;
using testing::FakeRequest;
using testing::FakeWire;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ModelCluster;
using testing::StatusIs;

constexpr char kPods[] = "/api/v1/namespaces/team/pods";
constexpr char kHosted[] = "flights-worker-0-1";

size_t ThreadsOfProcess() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(threads), end(threads)));
}

/// A ModelCluster behind HTTP.
class ModelServer {
 public:
  ModelServer()
      : server_([this](const FakeRequest& request, FakeWire& wire) { Serve(request, wire); }) {}
  ~ModelServer() { Stop(); }

  /// Changes what is there; watches tell of it.
  void Change(const std::function<void(ModelCluster*)>& change) {
    const MutexLock lock(&mutex_);
    change(&cluster_);
    changed_.SignalAll();
  }
  template <typename T>
  T Look(const std::function<T(const ModelCluster&)>& look) {
    const MutexLock lock(&mutex_);
    return look(cluster_);
  }
  void Stop() {
    const MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.SignalAll();
  }
  /// Answers of this kind wait until they are let go.
  void HoldUp(const std::string& method) {
    const MutexLock lock(&mutex_);
    held_up_ = method;
    changed_.SignalAll();
  }
  ClusterAccess Access() const { return server_.Access(); }
  std::vector<FakeRequest> requests() const { return server_.requests(); }
  std::map<std::string, std::string> logs;

 private:
  static bool Begins(const std::string& text, const std::string& with) {
    return text.compare(0, with.size(), with) == 0;
  }
  void Serve(const FakeRequest& request, FakeWire& wire) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (path == kPods && request.target.find("watch=true") != std::string::npos) {
      return Watch(request, wire);
    }
    const size_t log = path.rfind("/log");
    if (log != std::string::npos && log + 4 == path.size()) {
      return wire.Send(testing::Answer(200, logs[path.substr(sizeof(kPods), log - sizeof(kPods))]));
    }
    const MutexLock lock(&mutex_);
    while (held_up_ == request.method && !stopped_) changed_.Wait(&mutex_);
    const ModelCluster::Reply reply = Do(request, path);
    changed_.SignalAll();
    wire.Send(testing::Answer(reply.code, reply.body.dump()));
  }
  ModelCluster::Reply Do(const FakeRequest& request, const std::string& path)
      MUSTER_REQUIRES(mutex_) {
    const Json body = request.body.empty() ? Json() : Json::parse(request.body);
    std::string name = path.substr(std::min(path.size(), sizeof(kPods)));
    if (request.method == "POST") return cluster_.Create(body);
    if (request.method == "DELETE") return cluster_.Delete(name, body);
    if (request.method == "PATCH") {
      EXPECT_TRUE(Begins(request.content_type, "application/strategic-merge-patch+json"));
      return cluster_.Resize(name.substr(0, name.find("/resize")), body);
    }
    if (!name.empty()) return cluster_.Get(name);
    Json items = Json::array();
    for (const auto& [each, pod] : cluster_.pods()) items.push_back(pod);
    return {200, {{"metadata", {{"resourceVersion", cluster_.version()}}}, {"items", items}}};
  }
  void Watch(const FakeRequest& request, FakeWire& wire) {
    const size_t at = request.target.find("resourceVersion=") + sizeof("resourceVersion=") - 1;
    const uint64_t version = std::stoull(request.target.substr(at));
    wire.Send(testing::ChunkedHead());
    const MutexLock lock(&mutex_);
    for (size_t next = 0; !stopped_;) {
      for (; next < cluster_.events().size(); ++next) {
        const Json& event = cluster_.events()[next];
        const std::string own = TextAt(event, {"object", "metadata", "resourceVersion"});
        if (std::stoull(own) > version) wire.Send(testing::Chunk(event.dump() + "\n"));
      }
      changed_.Wait(&mutex_);
    }
  }

  Mutex mutex_;
  CondVar changed_;
  ModelCluster cluster_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
  std::string held_up_ MUSTER_GUARDED_BY(mutex_);
  testing::FakeApiServer server_;
};

class PodHostTest : public ::testing::Test {
 protected:
  void TearDown() override {
    server_.HoldUp("");
    server_.Stop();
    host_.reset();
  }
  std::vector<FoundNode> Open(milliseconds request_deadline = seconds(30)) {
    credentials_ = std::make_unique<CredentialSource>(server_.Access(), &clock_);
    client_ = std::make_unique<Client>(credentials_.get(), &clock_,
                                       ClientOptions{.request_deadline = request_deadline});
    host_ = std::make_unique<PodHost>(
        client_.get(), &clock_,
        PodHostOptions{.run = testing::TestRun(),
                       .templates = {testing::MinimalTemplate(), testing::MinimalTemplate()},
                       .beat = [this] { LetGoAfterBeats(); }});
    const auto found = host_->Find();
    EXPECT_THAT(found, testing::IsOk());
    return found.value_or(std::vector<FoundNode>{});
  }
  /// Answers of this kind wait until the host has given three signs of life.
  void HoldUpForBeats(const std::string& method) {
    beats_ = 0;
    server_.HoldUp(method);
  }
  void LetGoAfterBeats() {
    if (++beats_ == 3) server_.HoldUp("");
  }
  /// Reports as they come, until there are `count`.
  std::vector<std::string> Await(size_t count) {
    std::vector<HostReport> reports;
    const TimePoint end = clock_.Now() + seconds(60);
    while (reports.size() < count && clock_.Now() < end) {
      pollfd wake{host_->wake_fd(), POLLIN, 0};
      ::poll(&wake, 1, 100);
      for (HostReport& report : host_->TakeReports()) reports.push_back(std::move(report));
    }
    return testing::Texts(reports);
  }
  void AwaitPod(const std::string& name, bool there) {
    const TimePoint end = clock_.Now() + seconds(60);
    while (clock_.Now() < end) {
      host_->TakeReports();
      const bool is_there = server_.Look<bool>(
          [&](const ModelCluster& cluster) { return cluster.pods().contains(name); });
      if (is_there == there) return;
      SleepFor(milliseconds(5));  // the server has no event for a test
    }
    ADD_FAILURE() << "waited in vain for " << name;
  }
  void StartRunning() {
    ASSERT_THAT(host_->Start({.node = "worker-0", .start = 1}), testing::IsOk());
    AwaitPod(kHosted, true);
    server_.Change([](ModelCluster* cluster) { cluster->Run(kHosted); });
    ASSERT_THAT(Await(1), ElementsAre("start worker-0"));
  }

  SystemClock clock_;
  ModelServer server_;
  int beats_ = 0;
  std::unique_ptr<CredentialSource> credentials_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<PodHost> host_;
};

TEST_F(PodHostTest, ALife) {
  EXPECT_THAT(Open(), IsEmpty());
  StartRunning();
  EXPECT_TRUE(host_->Has("worker-0"));
  EXPECT_THAT(host_->SetLimits("worker-0", {.cpus = 2}), testing::IsOk());
  EXPECT_THAT(Await(1), ElementsAre("resized worker-0 done"));
  host_->Stop("worker-0", seconds(5));
  const TimePoint end = clock_.Now() + seconds(60);
  const auto is_leaving = [](const ModelCluster& cluster) {
    return cluster.pods().at(kHosted)["metadata"].contains("deletionTimestamp");
  };
  while (!server_.Look<bool>(is_leaving) && clock_.Now() < end) SleepFor(milliseconds(5));
  server_.Change([](ModelCluster* cluster) {
    cluster->End(kHosted, 0);
    cluster->Remove(kHosted);
  });
  EXPECT_THAT(Await(1), ElementsAre("exit worker-0 exit 0"));
  host_->Release("worker-0");
  EXPECT_FALSE(host_->Has("worker-0"));
}

TEST_F(PodHostTest, WhatIsThereIsFound) {
  Open();
  StartRunning();
  host_.reset();
  EXPECT_THAT(Open(), ElementsAre(FoundNode{"worker-0", 1, true}));
  EXPECT_THAT(Await(1), ElementsAre("start worker-0"));
  server_.Change([](ModelCluster* cluster) { cluster->End(kHosted, 3); });
  EXPECT_THAT(Await(1), ElementsAre("exit worker-0 exit 3"));
  EXPECT_EQ(host_->DeathOf("worker-9", 1).disruption, Disruption::kDeleted);
}

TEST_F(PodHostTest, ARunWhoseJobIsGoneIsAbandoned) {
  Open();
  StartRunning();
  EXPECT_EQ(host_->WhyAbandoned(), "");
  server_.Change([](ModelCluster* cluster) {
    cluster->Change(kHosted, [](Json* pod) { (*pod)["metadata"].erase("ownerReferences"); });
  });
  while (host_->WhyAbandoned().empty()) std::this_thread::yield();
  EXPECT_THAT(host_->WhyAbandoned(), HasSubstr("the Job flights was deleted without its pods"));
}

TEST_F(PodHostTest, ItGivesSignsOfLifeWhileItWaits) {
  HoldUpForBeats("GET");
  EXPECT_THAT(Open(), IsEmpty());
  EXPECT_GE(beats_, 3);
  StartRunning();
  HoldUpForBeats("DELETE");
  host_->EndRun();
  EXPECT_GE(beats_, 3);
}

TEST_F(PodHostTest, ASlowApiServerHoldsUpNoCall) {
  Open();
  StartRunning();
  server_.logs[kHosted] = "2026-11-26T13:30:00Z hello\n";
  server_.HoldUp("POST");
  for (int i = 1; i < 4; ++i) {
    ASSERT_THAT(host_->Start({.node = "worker-" + std::to_string(i), .start = 1}), testing::IsOk());
  }
  const auto log = host_->ReadLog("worker-0", {});
  ASSERT_THAT(log, testing::IsOk());
  EXPECT_THAT(log->lines, ElementsAre("hello"));
  EXPECT_THAT(host_->TakeReports(), IsEmpty());
  server_.HoldUp("");
  for (int i = 1; i < 4; ++i) AwaitPod("flights-worker-" + std::to_string(i) + "-1", true);
}

TEST_F(PodHostTest, ItsEndWaitsForNoAnswer) {
  Open(hours(1));
  server_.HoldUp("POST");
  ASSERT_THAT(host_->Start({.node = "worker-0", .start = 1}), testing::IsOk());
  const auto asked = [this] {
    const std::vector<FakeRequest> requests = server_.requests();
    return std::ranges::any_of(requests,
                               [](const FakeRequest& request) { return request.method == "POST"; });
  };
  while (!asked()) SleepFor(milliseconds(5));  // the server has no event for a test
  host_.reset();                               // else it would wait for an hour
}

TEST_F(PodHostTest, Logs) {
  Open();
  EXPECT_THAT(host_->ReadLog("worker-0", {}), StatusIs(absl::StatusCode::kNotFound, _));
  StartRunning();
  server_.logs[kHosted] = "2026-11-26T13:30:00.1Z a\n2026-11-26T13:30:00.2Z b\n";
  server_.Change([](ModelCluster* cluster) { cluster->End(kHosted, 3); });
  Await(1);
  host_->Release("worker-0");
  ASSERT_THAT(host_->Start({.node = "worker-0", .start = 2}), testing::IsOk());
  AwaitPod("flights-worker-0-2", true);
  server_.Change([](ModelCluster* cluster) { cluster->Run("flights-worker-0-2"); });
  ASSERT_THAT(Await(1), ElementsAre("start worker-0"));
  server_.logs["flights-worker-0-2"] = "2026-11-26T13:31:00Z c\n";
  const auto all = host_->ReadLog("worker-0", {});
  ASSERT_THAT(all, testing::IsOk());
  EXPECT_THAT(all->lines, ElementsAre("a", "b", "c")) << "over its starts";
  const auto rest = host_->ReadLog("worker-0", {.offset = all->offset + 1});
  ASSERT_THAT(rest, testing::IsOk());
  EXPECT_THAT(rest->lines, ElementsAre("b", "c"));
  const auto none = host_->ReadLog("worker-0", {.offset = rest->next_offset});
  ASSERT_THAT(none, testing::IsOk());
  EXPECT_THAT(none->lines, IsEmpty());
  EXPECT_EQ(none->next_offset, rest->next_offset);
  EXPECT_THAT(server_.requests().back().target, HasSubstr("sinceTime=2026-11-26T13%3A31%3A00Z"));
}

TEST_F(PodHostTest, TheEndOfTheRunLeavesNothing) {
  Open();
  StartRunning();
  server_.Change([](ModelCluster* cluster) { cluster->End(kHosted, 0); });
  Await(1);
  host_->Release("worker-0");
  host_->EndRun();
  EXPECT_TRUE(
      server_.Look<bool>([](const ModelCluster& cluster) { return cluster.pods().empty(); }));
}

TEST_F(PodHostTest, ChangesMayComeWhileItEnds) {
  Open();
  StartRunning();
  server_.HoldUp("POST");
  ASSERT_THAT(host_->Start({.node = "worker-1", .start = 2}), testing::IsOk());
  // One of its threads now waits for the answer, and so does its end.
  const TimePoint end = clock_.Now() + seconds(60);
  const auto asked = [&] {
    return std::ranges::any_of(server_.requests(), [](const FakeRequest& request) {
      return request.body.find("flights-worker-1-2") != std::string::npos;
    });
  };
  while (!asked() && clock_.Now() < end) SleepFor(milliseconds(5));
  const size_t threads = ThreadsOfProcess();
  const int wake_fd = host_->wake_fd();
  std::jthread ending([this] { host_.reset(); });
  // It has begun to end when most of its eight threads have gone.
  while (ThreadsOfProcess() + 5 > threads && clock_.Now() < end) SleepFor(milliseconds(1));
  server_.Change([](ModelCluster* cluster) {
    // It would delete this pod, which an older start has left, and it tells of the end of the
    // other.
    cluster->Create(PodBody(testing::TestRun(),
                            {testing::MinimalTemplate(), testing::MinimalTemplate()},
                            {.node = "worker-1", .start = 1}));
    cluster->End(kHosted, 3);
  });
  pollfd wake{wake_fd, POLLIN, 0};
  EXPECT_EQ(::poll(&wake, 1, 60'000), 1);
  EXPECT_EQ(std::ranges::count(server_.requests(), "DELETE", &FakeRequest::method), 0);
  server_.HoldUp("");
}

TEST_F(PodHostTest, AtRestNothingIsAsked) {
  Open();
  StartRunning();
  const uint64_t before = client_->requests();
  for (int i = 0; i < 50; ++i) {
    host_->TakeReports();
    EXPECT_THAT(host_->Usage("worker-0"), StatusIs(absl::StatusCode::kUnavailable, _));
  }
  EXPECT_EQ(client_->requests(), before);
}

TEST_F(PodHostTest, WhatAPodCannotDo) {
  Open();
  StartRunning();
  EXPECT_THAT(host_->DumpStacks("worker-0"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("kubectl --namespace team exec flights-worker-0-1 -- ")));
  EXPECT_THAT(host_->DumpStacks("worker-1"), StatusIs(absl::StatusCode::kNotFound, _));
  EXPECT_THAT(host_->Usage("worker-1"), StatusIs(absl::StatusCode::kNotFound, _));
  EXPECT_THAT(host_->UsageOfProcess(1), StatusIs(absl::StatusCode::kUnimplemented, _));
  EXPECT_EQ(host_->Capacity(), Resources{});
  EXPECT_EQ(host_->Idle(), std::nullopt);
  EXPECT_EQ(host_->limits_remark(), "");
  EXPECT_THAT(host_->Start({.node = "Bad_Name", .start = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

/// An API server that has just started forbids what it will allow.
class PodHostWithoutRights : public ::testing::Test {
 protected:
  /// Steps on by an hour when it is told to.
  class SteppingClock final : public Clock {
   public:
    TimePoint Now() const override { return clock_.Now() + std::chrono::hours(hours.load()); }
    WallTime Wall() const override { return clock_.Wall(); }
    std::atomic<int> hours = 0;

   private:
    SystemClock clock_;
  };
  static std::string Forbidden() {
    return testing::Answer(
        403,
        R"({"kind":"Status","code":403,"reason":"Forbidden","message":"pods is forbidden: User )"
        R"(\"muster\" cannot list resource \"pods\" in API group \"\" in the namespace )"
        R"(\"team\""})");
  }
  absl::StatusOr<std::vector<FoundNode>> Find() {
    const SystemClock clock;  // its deadlines do not step on
    CredentialSource credentials(server_.Access(), &clock);
    Client client(&credentials, &clock);
    PodHost host(&client, &clock_, {.run = testing::TestRun()});
    return host.Find();
  }

  SteppingClock clock_;
  std::atomic<int> requests_ = 0;
  /// Called with the number of the request.
  std::function<std::string(int)> answer_;
  testing::FakeApiServer server_{
      [this](const FakeRequest&, FakeWire& wire) { wire.Send(answer_(++requests_)); }};
};

TEST_F(PodHostWithoutRights, AnApiServerThatHasJustStarted) {
  answer_ = [](int request) {
    if (request < 3) return Forbidden();
    return testing::Answer(200, R"({"metadata":{"resourceVersion":"1"},"items":[]})");
  };
  EXPECT_THAT(Find(), testing::IsOk());
}

TEST_F(PodHostWithoutRights, FindNamesWhatIsMissing) {
  // The host has heard of the first answer when its watcher asks again.
  answer_ = [this](int request) {
    if (request == 2) clock_.hours = 1;
    return Forbidden();
  };
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("list")));
}

}  // namespace
}  // namespace muster::kubernetes
