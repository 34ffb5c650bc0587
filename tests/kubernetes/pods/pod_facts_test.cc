#include "kubernetes/pods/pod_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/file.h"
#include "host/exit_note.h"
#include "kubernetes/model/json_access.h"
#include "tests/support/status_matchers.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;
using Stage = PodFacts::Stage;

/// A pod as a real API server had it (tests/kubernetes/README.md), with the labels of a node.
nlohmann::json Recorded(const std::string& name) {
  const auto text = ReadFile(std::string(MUSTER_POD_FOLDER) + "/" + name + ".json", 1 << 20);
  EXPECT_THAT(text, testing::IsOk());
  auto pod = ParseJson(*text);
  EXPECT_THAT(pod, testing::IsOk());
  (*pod)["metadata"]["labels"] = {{"muster/job", "flights"},
                                  {"muster/run", "run-1"},
                                  {"muster/node", "worker-0"},
                                  {"muster/start", "3"}};
  return *pod;
}
PodFacts Read(const std::string& name) {
  return ReadPodFacts(Recorded(name));
}

TEST(PodFactsTest, Labels) {
  const PodFacts facts = Read("running");
  EXPECT_EQ(facts.run, "run-1");
  EXPECT_EQ(facts.node, "worker-0");
  EXPECT_EQ(facts.start, 3u);
  EXPECT_EQ(facts.container, "main");
  nlohmann::json odd = Recorded("running");
  for (const char* const start : {"", "x", "-1", "3x", "99999999999"}) {
    odd["metadata"]["labels"]["muster/start"] = start;
    EXPECT_EQ(ReadPodFacts(odd).start, 0u) << start;
  }
  EXPECT_EQ(ReadPodFacts(nlohmann::json()).start, 0u);
}

TEST(PodFactsTest, TheJobOfItsRunOwnsAPod) {
  nlohmann::json pod = Recorded("running");
  EXPECT_FALSE(ReadPodFacts(pod).owned);
  pod["metadata"]["ownerReferences"] = {{{"kind", "Job"}, {"uid", "run-0"}}};
  EXPECT_FALSE(ReadPodFacts(pod).owned);
  pod["metadata"]["ownerReferences"].push_back({{"kind", "Job"}, {"uid", "run-1"}});
  EXPECT_TRUE(ReadPodFacts(pod).owned);
  pod["metadata"].erase("ownerReferences");
  pod["metadata"]["labels"].erase("muster/run");
  EXPECT_FALSE(ReadPodFacts(pod).owned) << "of no run";
}

TEST(PodFactsTest, WhatIsWaitedFor) {
  struct Row {
    const char* pod;
    NodeWait wait;
    const char* words;
  };
  for (const Row& row : {Row{"unschedulable", NodeWait::kUnschedulable, "Insufficient cpu"},
                         Row{"image-error", NodeWait::kImage, "ErrImagePull"},
                         Row{"config-error", NodeWait::kConfig, "CreateContainerConfigError"}}) {
    const PodFacts facts = Read(row.pod);
    EXPECT_EQ(facts.stage, Stage::kWaiting) << row.pod;
    EXPECT_EQ(facts.wait, row.wait) << row.pod;
    EXPECT_THAT(facts.wait_reason, HasSubstr(row.words)) << row.pod;
    EXPECT_FALSE(facts.ran) << row.pod;
  }
}

TEST(PodFactsTest, HowItEnded) {
  struct Row {
    const char* pod;
    ExitStatus exit;
    MemoryKill kill;
    Disruption disruption;
    uint64_t pid;
  };
  const Row rows[] = {
      {"succeeded", {0, 0}, MemoryKill::kNone, Disruption::kNone, 1},
      {"exit-3", {0, 3}, MemoryKill::kNone, Disruption::kNone, 1},
      {"exit-137", {SIGKILL, 0}, MemoryKill::kNone, Disruption::kNone, 1},
      {"killed", {SIGKILL, 0}, MemoryKill::kNone, Disruption::kNone, 1},
      {"out-of-memory", {SIGKILL, 0}, MemoryKill::kKernel, Disruption::kNone, 1},
      {"evicted", {SIGTERM, 0}, MemoryKill::kNone, Disruption::kEvicted, 1},
  };
  for (const Row& row : rows) {
    const PodFacts facts = Read(row.pod);
    EXPECT_EQ(facts.stage, Stage::kEnded) << row.pod;
    const NodeExited exit = ExitOfPod(facts, /*ordered=*/false);
    EXPECT_EQ(exit.node, "worker-0");
    EXPECT_EQ(exit.exit, row.exit) << row.pod;
    EXPECT_EQ(exit.memory_kill, row.kill) << row.pod;
    EXPECT_EQ(exit.disruption, row.disruption) << row.pod;
    EXPECT_EQ(exit.pid, row.pid) << row.pod;
    EXPECT_FALSE(exit.not_started) << row.pod;
  }
}

TEST(PodFactsTest, TheMemoryLimitInForce) {
  const auto limit_of = [](const nlohmann::json& pod) {
    return ExitOfPod(ReadPodFacts(pod), /*ordered=*/false).memory_limit_bytes;
  };
  nlohmann::json pod = Recorded("out-of-memory");
  nlohmann::json& status = pod["status"]["containerStatuses"][0];
  // Its machine has put off a larger one.
  pod["spec"]["containers"][0]["resources"]["limits"]["memory"] = "512Mi";
  status["resources"]["limits"]["memory"] = "128Mi";
  EXPECT_EQ(limit_of(pod), 128u << 20);
  EXPECT_EQ(MemoryLimitOf(ReadPodFacts(pod)), 128u << 20);
  status.erase("resources");
  EXPECT_EQ(limit_of(pod), 512u << 20) << "the status does not say";
  NodeExited noted{.exit = {.signal = SIGKILL}};
  noted.memory_limit_bytes = 64u << 20;
  status["state"]["terminated"]["message"] = ExitNote(noted);
  EXPECT_EQ(limit_of(pod), 64u << 20) << "the node knew it best";
}

TEST(PodFactsTest, EvictedWithoutAStatusOfItsContainer) {
  nlohmann::json pod = Recorded("evicted");
  pod["status"].erase("containerStatuses");
  const NodeExited exit = ExitOfPod(ReadPodFacts(pod), /*ordered=*/false);
  EXPECT_EQ(exit.exit.signal, SIGKILL);
  EXPECT_EQ(exit.disruption, Disruption::kEvicted);
  EXPECT_EQ(exit.pid, 0u);
  EXPECT_TRUE(exit.not_started) << "as far as is known";
}

TEST(PodFactsTest, TakenAwayWhileItRuns) {
  struct Row {
    const char* pod;
    Disruption disruption;
  };
  for (const Row& row :
       {Row{"preempted", Disruption::kPreempted}, Row{"drained", Disruption::kDrained},
        Row{"node-lost", Disruption::kNodeLost}}) {
    const PodFacts facts = Read(row.pod);
    EXPECT_EQ(facts.stage, Stage::kRunning) << row.pod;
    EXPECT_TRUE(facts.being_deleted) << row.pod;
    EXPECT_EQ(facts.disruption, row.disruption) << row.pod;
    // It goes while it runs.
    const NodeExited exit = ExitOfPod(facts, /*ordered=*/false);
    EXPECT_EQ(exit.exit, (ExitStatus{.signal = SIGKILL}));
    EXPECT_EQ(exit.disruption, row.disruption) << row.pod;
    EXPECT_FALSE(exit.disruption_text.empty());
  }
}

TEST(PodFactsTest, SomebodyDeletesIt) {
  const PodFacts facts = Read("running");
  EXPECT_EQ(ExitOfPod(facts, /*ordered=*/false).disruption, Disruption::kDeleted);
  EXPECT_EQ(ExitOfPod(facts, /*ordered=*/true).disruption, Disruption::kNone);
  nlohmann::json ended = Recorded("exit-3");
  EXPECT_EQ(ExitOfPod(ReadPodFacts(ended), false).disruption, Disruption::kNone);
  ended["metadata"]["deletionTimestamp"] = "2026-11-26T14:12:03Z";
  EXPECT_EQ(ExitOfPod(ReadPodFacts(ended), false).disruption, Disruption::kDeleted);
  EXPECT_EQ(ExitOfPod(ReadPodFacts(ended), true).disruption, Disruption::kNone);
}

TEST(PodFactsTest, OutOfMemoryWhileItIsTakenAway) {
  nlohmann::json pod = Recorded("out-of-memory");
  pod["metadata"]["deletionTimestamp"] = "2026-11-26T14:12:03Z";
  const NodeExited exit = ExitOfPod(ReadPodFacts(pod), /*ordered=*/false);
  EXPECT_EQ(exit.memory_kill, MemoryKill::kKernel);
  EXPECT_EQ(exit.disruption, Disruption::kNone) << "it is to blame itself";
}

TEST(PodFactsTest, TheNoteSaysMoreThanTheExitCode) {
  NodeExited exit{.node = "ignored", .exit = {.signal = SIGSEGV}, .last_words = "boom\n"};
  exit.slot = SlotRecord{.incarnation = 7, .computing = {{LeaseToken::FromValue(5), 2}}};
  exit.memory_peak_bytes = 99;
  nlohmann::json pod = Recorded("exit-3");
  nlohmann::json& end = pod["status"]["containerStatuses"][0]["state"]["terminated"];
  end["message"] = ExitNote(exit);
  const PodFacts facts = ReadPodFacts(pod);
  EXPECT_EQ(facts.exit.exit.signal, SIGSEGV);
  EXPECT_EQ(facts.exit.slot, exit.slot);
  EXPECT_EQ(facts.exit.last_words, "boom\n");
  EXPECT_EQ(facts.exit.node, "worker-0");
  EXPECT_EQ(facts.exit.memory_peak_bytes, 99u);
  // What the runtime knows of memory counts more.
  end["reason"] = "OOMKilled";
  EXPECT_EQ(ReadPodFacts(pod).exit.memory_kill, MemoryKill::kKernel);
  EXPECT_EQ(ReadPodFacts(pod).exit.exit.signal, SIGKILL);
  // A container may write anything there.
  end["message"] = "panic: no such file";
  end["reason"] = "Error";
  EXPECT_EQ(ReadPodFacts(pod).exit.last_words, "panic: no such file");
  EXPECT_EQ(ReadPodFacts(pod).exit.exit, (ExitStatus{.signal = 0, .code = 3}));
}

TEST(PodFactsTest, ASidecarDoesNotKeepANodeAlive) {
  nlohmann::json pod = Recorded("exit-3");
  pod["status"]["phase"] = "Running";
  EXPECT_EQ(ReadPodFacts(pod).stage, Stage::kEnded);
  EXPECT_EQ(ReadPodFacts(pod).exit.exit.code, 3);
}

// An admission webhook may put its own container first.
TEST(PodFactsTest, TheNodeIsTheContainerOfMusterWhereverItStands) {
  const auto status = [](const char* name, const char* state, int code) -> nlohmann::json {
    nlohmann::json of = {{"name", name}};
    of["state"][state] = {{"exitCode", code}};
    return of;
  };
  nlohmann::json pod = {
      {"metadata", {{"name", "p"}}},
      {"spec",
       {{"containers",
         nlohmann::json::array(
             {{{"name", "proxy"}, {"resources", {{"limits", {{"memory", "1"}}}}}},
              {{"name", "muster"}, {"resources", {{"limits", {{"memory", "7"}}}}}}})}}},
      {"status",
       {{"phase", "Running"},
        {"containerStatuses", nlohmann::json::array({status("proxy", "running", 0),
                                                     status("muster", "terminated", 3)})}}}};
  PodFacts facts = ReadPodFacts(pod);
  EXPECT_EQ(facts.container, "muster");
  EXPECT_EQ(facts.limits.memory_bytes, 7u);
  EXPECT_EQ(facts.stage, Stage::kEnded);
  EXPECT_EQ(facts.exit.exit, (ExitStatus{.signal = 0, .code = 3}));
  pod["status"]["containerStatuses"] =
      nlohmann::json::array({status("proxy", "terminated", 0), status("muster", "running", 0)});
  EXPECT_EQ(ReadPodFacts(pod).stage, Stage::kRunning) << "its sidecar's end is not its own";
}

TEST(PodFactsTest, Resize) {
  EXPECT_EQ(Read("resize-deferred").resize, PodResize::kDeferred);
  EXPECT_FALSE(Read("resize-deferred").resize_text.empty());
}

TEST(PodFactsTest, TheReasonOfADisruptionIsNotTheNoteOfTheExit) {
  const nlohmann::json pod = {
      {"metadata", {{"name", "p"}}},
      {"spec", {{"containers", nlohmann::json::array({{{"name", "muster"}}})}, {"nodeName", "n1"}}},
      {"status",
       {{"phase", "Failed"},
        {"conditions", nlohmann::json::array({{{"type", "DisruptionTarget"},
                                               {"status", "True"},
                                               {"reason", "EvictionByEvictionAPI"},
                                               {"message", "Eviction API: evicting"}}})},
        {"containerStatuses",
         nlohmann::json::array({{{"name", "muster"},
                                 {"state",
                                  {{"terminated",
                                    {{"exitCode", 1},
                                     {"reason", "Error"},
                                     {"message", R"({"code":1,"last_words":"bye"})"}}}}}}})}}}};
  const PodFacts facts = ReadPodFacts(pod);
  EXPECT_EQ(facts.disruption, Disruption::kDrained);
  EXPECT_EQ(facts.disruption_text, "EvictionByEvictionAPI: Eviction API: evicting");
}

}  // namespace
}  // namespace muster::kubernetes
