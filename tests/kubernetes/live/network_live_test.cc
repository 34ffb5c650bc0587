#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "kubernetes/model/json_access.h"
#include "tests/kubernetes/live/plane.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using testing::AskPlane;
using testing::Kubectl;
using testing::PodRunning;

/// What the stand-in kubelet gives to pods: tests of Muster in pods rely on it.
class NetworkLiveTest : public testing::LiveTest {
 protected:
  /// A pod on a node. It stays there while the node is silent.
  static nlohmann::json On(const std::string& node, const std::string& name,
                           const std::string& script) {
    nlohmann::json pod = PodRunning(name, script);
    pod["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", node}};
    pod["spec"]["tolerations"] = nlohmann::json::parse(R"([{"operator": "Exists"}])");
    return pod;
  }
  /// One that the Service `web` selects. It says `word` to those who ask for /word.
  static nlohmann::json Web(const std::string& node, const std::string& word) {
    nlohmann::json pod =
        On(node, "web-" + word,
           "mkdir /tmp/web; cd /tmp/web; echo " + word + " > word; exec python3 -m http.server 80");
    pod["metadata"]["labels"]["app"] = "web";
    return pod;
  }
  /// A pod on n2 that asks the Service again and again, by this name, until the answer is each of
  /// the words in turn; "none" means no answer.
  static nlohmann::json Asking(const std::string& name, const std::string& words) {
    return On("n2", "asks",
              R"(exec python3 -c '
import time, urllib.request
def answer():
  try: return urllib.request.urlopen("http://)" +
                  name + R"(/word", timeout=1).read().decode().strip()
  except OSError: return "none"
for word in ")" + words +
                  R"(".split():
  while answer() != word: time.sleep(0.1)
  print(word, flush=True)')");
  }
  /// Calls `then` once for each line that the pod writes, until it ends, which it must do well.
  void ForEachLine(const std::string& pod, const std::function<void(const std::string&)>& then) {
    std::string text;
    EXPECT_THAT(client_->FollowLogs(ns_, pod, {}, testing::kClusterPatience,
                                    [&](std::string_view bytes) {
                                      text += bytes;
                                      for (size_t end; (end = text.find('\n')) != text.npos;) {
                                        const std::string line = text.substr(0, end);
                                        text.erase(0, end + 1);
                                        then(line);
                                      }
                                      return absl::OkStatus();
                                    }),
                testing::IsOk());
    WaitForPhase(pod, "Succeeded");
  }
  std::string LastMessage(const std::string& pod) {
    return TextAt(WaitForPhase(pod, "Failed")["status"]["containerStatuses"][0],
                  {"state", "terminated", "message"});
  }
};

TEST_F(NetworkLiveTest, ANameLeadsToThePodsOfAService) {
  Kubectl("create service clusterip web --clusterip=None --tcp=80 -n " + ns_);
  Create(Web("n1", "one"));
  Create(Asking("web." + ns_ + ".svc", "one two"));
  WaitForPhase("asks", "Running");
  std::vector<std::string> lines;
  ForEachLine("asks", [&](const std::string& line) {
    lines.push_back(line);
    if (line != "one") return;
    // Its successor has another address.
    EXPECT_THAT(client_->Delete(Pod("web-one"), {}), testing::IsOk());
    Create(Web("n2", "two"));
  });
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
}

TEST_F(NetworkLiveTest, NothingPassesToANodeThatIsCutOff) {
  Kubectl("create service clusterip web --clusterip=None --tcp=80 -n " + ns_);
  Create(Web("n1", "one"));
  Create(Asking("web", "one none one"));
  WaitForPhase("asks", "Running");
  bool is_cut = false;
  ForEachLine("asks", [&](const std::string& line) {
    if (line == "one" && !is_cut) AskPlane("fault /node/n1/cut");
    if (line == "one") is_cut = true;
    if (line == "none") AskPlane("fault /node/n1/uncut");
  });
  EXPECT_TRUE(is_cut);
}

TEST_F(NetworkLiveTest, LastWords) {
  Create(PodRunning("note", "echo log; echo note > /dev/termination-log; exit 3"));
  Create(PodRunning("long", "head -c 5000 /dev/zero | tr '\\0' x > /dev/termination-log; exit 3"));
  nlohmann::json logs = PodRunning("logs", "echo log; exit 3");
  logs["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError";
  Create(logs);
  EXPECT_EQ(LastMessage("note"), "note\n");
  EXPECT_EQ(LastMessage("long"), std::string(4096, 'x'));
  EXPECT_EQ(LastMessage("logs"), "log\n");
}

TEST_F(NetworkLiveTest, LogsWithTimes) {
  Create(PodRunning("a", "echo one; sleep 1.5; echo two"));
  WaitForPhase("a", "Succeeded");
  const std::string lines = Kubectl("logs a --timestamps --since=1h -n " + ns_);
  const std::string second = lines.substr(lines.find('\n') + 1);
  EXPECT_TRUE(lines.find("Z one\n") != lines.npos && second.ends_with("Z two\n")) << lines;
  EXPECT_EQ(Kubectl("logs a --since-time=" + second.substr(0, second.find(' ')) + " -n " + ns_),
            "two\n");
}

/// A claim that two nodes see, for a user that is not root; contents that are renewed.
TEST_F(NetworkLiveTest, Volumes) {
  Kubectl("create configmap words --from-literal=word=old -n " + ns_);
  const testing::TempDir folder;
  ASSERT_THAT(WriteFileAtomically(folder.File("claim"), R"({
    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "all"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}})"),
              testing::IsOk());
  Kubectl("create -n " + ns_ + " -f " + folder.File("claim"));
  auto with_volumes = [](nlohmann::json pod) {
    pod["spec"]["securityContext"] = {{"runAsUser", 10001}, {"fsGroup", 10001}};
    pod["spec"]["volumes"] = nlohmann::json::parse(R"([
      {"name": "all", "persistentVolumeClaim": {"claimName": "all"}},
      {"name": "words",
       "configMap": {"name": "words", "items": [{"key": "word", "path": "a/b"}]}}])");
    pod["spec"]["containers"][0]["volumeMounts"] = nlohmann::json::parse(R"([
      {"name": "all", "mountPath": "/var/lib/all"},
      {"name": "words", "mountPath": "/etc/words"}])");
    return pod;
  };
  Create(with_volumes(On("n1", "writes",
                         "until [ $(cat /etc/words/a/b) = new ]; do sleep 0.1; done; "
                         "[ $(id -u) = 10001 ] && echo it > /var/lib/all/file")));
  Create(with_volumes(On("n2", "reads",
                         "until [ -s /var/lib/all/file ]; do sleep 0.1; done; "
                         "[ $(cat /var/lib/all/file) = it ]")));
  WaitForPhase("writes", "Running");
  Kubectl("patch configmap words -p '{\"data\":{\"word\":\"new\"}}' -n " + ns_);
  WaitForPhase("writes", "Succeeded");
  WaitForPhase("reads", "Succeeded");
}

}  // namespace
}  // namespace muster::kubernetes
