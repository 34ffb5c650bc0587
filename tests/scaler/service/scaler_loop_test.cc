#include "scaler/service/scaler_loop.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "scaler/service/plan_file.h"
#include "tests/scaler/rest/server/http_client.h"
#include "tests/scaler/service/scaler_fixture.h"
#include "tests/support/fake_clock.h"

namespace muster::scaler {
namespace {

using rest::testing::Answer;
using rest::testing::HttpClient;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::milliseconds;

constexpr uint64_t kMiB = 1 << 20;

/// A scaler that serves REST, in a thread of its own but for its nodes' parent, the main thread:
/// what a test wants of it is done by another.
class ScalerLoopTest : public testing::ScalerFixture {
 protected:
  ScalerLoopTest() {
    options_.on_rest = [this](uint16_t port) {
      port_ = port;
      return absl::OkStatus();
    };
    options_.shape.workers_min = 1;
    options_.shape.workers_max = 4;
  }

  Answer Ask(const std::string& method, const std::string& path, const std::string& body = "") {
    const std::string token = ReadFile(options_.token_file, 1000).value_or("").substr(0, 64);
    HttpClient client(port_);
    const std::string content =
        method == "GET"
            ? ""
            : fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
    return client.Ask(
        fmt::format("{} /api/v1/{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n"
                    "Authorization: Bearer {}\r\n{}\r\n{}",
                    method, path, port_.load(), token, content, body));
  }
  nlohmann::json Get(const std::string& path) {
    return nlohmann::json::parse(Ask("GET", path).body, nullptr, /*allow_exceptions=*/false);
  }
  nlohmann::json NodeOf(const std::string& name) { return Get("nodes/" + name); }
  std::vector<nlohmann::json> Events() {
    return Get("events?limit=1000").value("events", std::vector<nlohmann::json>{});
  }
  /// The newest event of this kind about the node; null when there is none.
  nlohmann::json EventOf(const std::string& kind, const std::string& target) {
    nlohmann::json newest;
    for (const nlohmann::json& event : Events()) {
      if (event["kind"] == kind && event["target"] == target) newest = event;
    }
    return newest;
  }
  bool Serves() { return port_ != 0 && Ask("GET", "job").status == 200; }
  bool Running(const std::string& node, uint32_t start) {
    return Log(node).find(fmt::format("start {}\n", start)) != std::string::npos;
  }
  size_t Starts(const std::string& node) {
    const std::string log = Log(node);
    size_t starts = 0;
    for (size_t at = 0; (at = log.find("\nstart", at)) != std::string::npos; ++at) ++starts;
    return starts;
  }
  /// Runs the scaler; `steps`, each until it is true, in a thread beside it; then cancels the job.
  void RunSteps(const std::vector<std::function<bool()>>& steps) {
    size_t at = 0;
    const absl::StatusOr<KeeperOutcome> outcome = RunUntil([&] {
      while (at < steps.size() && steps[at]()) ++at;
      return at == steps.size();
    });
    EXPECT_THAT(outcome.status(), IsOk());
    EXPECT_EQ(at, steps.size()) << "steps that came true";
  }

  std::atomic<uint16_t> port_ = 0;
};

TEST_F(ScalerLoopTest, WhatIsKilledForItsMemoryIsStartedAgainWithMore) {
  // `tail` keeps all of a line that never ends.
  worker_ = "if [ $MUSTER_START = 1 ]; then exec tail /dev/zero; fi; exec sleep 1000";
  options_.limits.worker.memory_bytes = 48 * kMiB;
  nlohmann::json exit, decision;
  RunSteps({[&] { return Running("worker-0", 2); },
            [&] {
              exit = EventOf("exit", "worker-0");
              decision = EventOf("decision", "worker-0");
              return !exit.is_null() && !decision.is_null();
            },
            [&] {
              const nlohmann::json node = NodeOf("worker-0");
              return node.is_object() && node["start"] == 2 &&
                     node["limits"]["memory_bytes"] == 72 * kMiB;
            }});
  EXPECT_EQ(decision["policy"], "out-of-memory");
  EXPECT_EQ(decision["cause_id"], exit["id"]);
  EXPECT_EQ(decision["before"]["memory_bytes"], 48 * kMiB);
  EXPECT_EQ(decision["after"]["memory_bytes"], 72 * kMiB);
  EXPECT_EQ(ReadPlan(options_.directory + "/plan.json")->nodes.at("worker-0").exits, 0u)
      << "no crash";
}

TEST_F(ScalerLoopTest, ATokenThatIsReplacedWhileItRunsLocksNobodyOut) {
  RunSteps({[&] { return Serves(); },
            [&] {
              RemoveFile(options_.token_file);
              client_->GetStatus().IgnoreError();  // the master makes another
              return true;
            },
            [&] { return Serves(); },
            [&] { return ::chmod(options_.token_file.c_str(), 0644) == 0; },
            [&] { return client_->GetStatus().ok(); },  // again, it has made another
            [&] { return Serves(); }});
}

TEST_F(ScalerLoopTest, TheMastersFirstAnswerIsShownAtOnce) {
  muster::testing::FakeClock clock;  // stands still: there is no second round
  std::atomic<bool> over = false;
  bool shown = false;
  std::thread asking([&] {
    for (int i = 0; i < 2'000 && !shown; ++i) {
      const nlohmann::json job = Serves() ? Get("job") : nlohmann::json::object();
      shown = job.value("name", "") == "flights" && job.value("master_reachable", false);
      ::poll(nullptr, 0, 10);
    }
    EXPECT_THAT(client_->Cancel(v1::CancelRequest()), IsOk());
    for (; !over; ::poll(nullptr, 0, 10)) clock.Advance(milliseconds(100));
  });
  EXPECT_THAT(RunScaler(options_, &clock).status(), IsOk());
  over = true;
  asking.join();
  EXPECT_TRUE(shown);
}

TEST_F(ScalerLoopTest, APersonRestartsANode) {
  Answer refused, taken;
  RunSteps({[&] { return Serves() && Running("worker-0", 1); },
            [&] {
              refused = Ask("POST", "nodes/worker-0/restart", R"({"only_start": 7})");
              taken = Ask("POST", "nodes/worker-0/restart",
                          R"({"only_start": 1, "reason": "looks stuck"})");
              return true;
            },
            [&] { return Running("worker-0", 2); }});
  EXPECT_EQ(refused.status, 409);
  ASSERT_EQ(taken.status, 202) << taken.body;
  const nlohmann::json event = nlohmann::json::parse(taken.body);
  EXPECT_EQ(event["kind"], "action");
  EXPECT_EQ(event["target"], "worker-0");
  EXPECT_THAT(event["because"].get<std::string>(), HasSubstr("looks stuck"));
}

TEST_F(ScalerLoopTest, LimitsChangeInPlaceOrAreRefusedAndNothingIsTold) {
  options_.shape.roles[NodeRole::kServer].max.memory_bytes = 512 * kMiB;
  Answer refused, taken;
  size_t events_before = 0, events_after = 0;
  RunSteps({[&] { return Serves() && Starts("ps-0") == 1; },
            [&] {
              events_before = Events().size();
              refused = Ask("POST", "nodes/ps-0/resize", R"({"memory_bytes": 1073741824})");
              events_after = Events().size();
              taken = Ask("POST", "nodes/ps-0/resize", R"({"memory_bytes": 268435456})");
              return true;
            },
            [&] { return NodeOf("ps-0")["limits"]["memory_bytes"] == 256 * kMiB; }});
  EXPECT_GE(refused.status, 409) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("512 MiB"));
  EXPECT_EQ(events_after, events_before);
  EXPECT_EQ(taken.status, 202) << taken.body;
  EXPECT_EQ(Starts("ps-0"), 1u) << "in place";
}

TEST_F(ScalerLoopTest, WorkersAreAdded) {
  RunSteps({[&] { return Serves() && Running("worker-0", 1); },
            [&] {
              const Answer taken = Ask("POST", "workers/scale", R"({"workers": 2})");
              EXPECT_EQ(taken.status, 202) << taken.body;
              return true;
            },
            [&] { return Running("worker-1", 1); },
            [&] { return Get("job")["workers_wanted"] == 2; }});
}

TEST_F(ScalerLoopTest, APausedPolicyStaysPausedForTheNextScaler) {
  RunSteps({[&] { return Serves(); },
            [&] {
              EXPECT_EQ(Ask("POST", "policies/hang/pause", "{}").status, 202);
              return true;
            },
            [&] {
              const nlohmann::json list = Get("policies");
              for (const nlohmann::json& policy : list["policies"]) {
                if (policy["name"] == "hang") return policy["paused"] == true;
              }
              return false;
            }});
  EXPECT_TRUE(ReadPlan(options_.directory + "/plan.json")->paused.contains("hang"));
}

TEST_F(ScalerLoopTest, WhatThePlanSaysOfPausesBeatsTheJobFile) {
  options_.decider.paused = {"hang"};
  RunSteps({[&] { return Serves(); },
            [&] {
              EXPECT_EQ(Ask("POST", "policies/hang/resume", "{}").status, 202) << "paused at first";
              return true;
            }});
  EXPECT_FALSE(ReadPlan(options_.directory + "/plan.json")->paused.contains("hang"));
}

TEST_F(ScalerLoopTest, PartitionsHaveTheirLoad) {
  RunSteps({[&] { return Serves(); },
            [&] {
              const nlohmann::json page = Get("partitions");
              return page.contains("partitions") && page["partitions"].size() == 1;
            }});
}

TEST_F(ScalerLoopTest, TheMasterCarriesOutWhatIsItsOwn) {
  std::string map;
  RunSteps({[&] { return Serves() && Get("job")["master_reachable"] == true; },
            [&] {
              map = Ask("GET", "datasets/0/epochs/0/shards").body;
              EXPECT_EQ(Ask("POST", "shards/retry", "{}").status, 409) << "none is FAILED";
              EXPECT_EQ(Ask("POST", "job/cancel", R"({"reason": "enough"})").status, 202);
              return true;
            },
            [&] { return Status().state == JobState::kCancelled; }});
  EXPECT_THAT(map, HasSubstr(R"("state":"todo")"));
  EXPECT_THAT(Status().reason, HasSubstr("enough"));
}

}  // namespace
}  // namespace muster::scaler
