#include "tests/cli/cluster/fake_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "tests/support/status_matchers.h"

namespace muster::cluster {
namespace {

using nlohmann::json;

constexpr char kNamespacePart[] = "/namespaces/team/";

/// "secrets/ads-muster" of a path.
std::string PlaceIn(const std::string& target) {
  const size_t at = target.find(kNamespacePart);
  if (at == std::string::npos) return "";
  const std::string place = target.substr(at + sizeof(kNamespacePart) - 1);
  return place.substr(0, place.find('?'));
}

std::string Failure(int code, const std::string& reason) {
  return testing::Answer(code, json{{"kind", "Status"},
                                    {"status", "Failure"},
                                    {"reason", reason},
                                    {"message", reason},
                                    {"code", code}}
                                   .dump());
}

}  // namespace

FakeCluster::FakeCluster()
    : server_([this](const testing::FakeRequest& request, testing::FakeWire& wire) {
        Handle(request, wire);
      }),
      cluster_(server_.Access(), "team") {
  const kubernetes::ClusterAccess access = server_.Access();
  EXPECT_THAT(WriteFileAtomically(folder_.path() + "/ca.crt", access.authority.text),
              testing::IsOk());
  EXPECT_THAT(
      WriteFileAtomically(
          folder_.path() + "/config",
          fmt::format("current-context: c\n"
                      "contexts: [{{name: c, context: {{cluster: k, user: u, namespace: team}}}}]\n"
                      "clusters: [{{name: k, cluster: {{server: 'https://127.0.0.1:{}', "
                      "certificate-authority: ca.crt}}}}]\n"
                      "users: [{{name: u, user: {{token: secret}}}}]\n",
                      access.port)),
      testing::IsOk());
}

ClusterTarget FakeCluster::Target() const {
  return {.on = "kubernetes", .kubeconfig = folder_.path() + "/config"};
}

void FakeCluster::Put(const std::string& place, json object) {
  const MutexLock lock(&mutex_);
  if (object.is_null()) {
    objects_.erase(place);
  } else {
    objects_[place] = std::move(object);
  }
}

void FakeCluster::MakeBefore(const std::string& place, std::map<std::string, json> objects) {
  const MutexLock lock(&mutex_);
  rivals_[place] = std::move(objects);
}

void FakeCluster::FailNext(const std::string& place, int times) {
  const MutexLock lock(&mutex_);
  failures_[place] = times;
}

json FakeCluster::At(const std::string& place) const {
  const MutexLock lock(&mutex_);
  const auto found = objects_.find(place);
  return found == objects_.end() ? json() : found->second;
}

void FakeCluster::SetStatusOfNewJobs(json status) {
  const MutexLock lock(&mutex_);
  job_status_ = std::move(status);
}

void FakeCluster::SetStatusOfNewPods(json status) {
  const MutexLock lock(&mutex_);
  pod_status_ = std::move(status);
}

void FakeCluster::SetPort(uint16_t port, std::string hello, std::string answer) {
  const MutexLock lock(&mutex_);
  port_ = port;
  hello_ = std::move(hello);
  answer_ = std::move(answer);
}

std::string FakeCluster::heard() const {
  const MutexLock lock(&mutex_);
  return heard_;
}

void FakeCluster::Deny(const std::string& right) {
  const MutexLock lock(&mutex_);
  denied_.insert(right);
}

std::vector<std::string> FakeCluster::changes() const {
  const MutexLock lock(&mutex_);
  return changes_;
}

void FakeCluster::Handle(const testing::FakeRequest& request, testing::FakeWire& wire) {
  if (request.target.find("/portforward?") == std::string::npos) {
    wire.Send(Answer(request));
    return;
  }
  if (Converse(request, wire)) return;
  // Says where the connection arrived, and waits for its end.
  if (!wire.AcceptWebSocket("v4.channel.k8s.io")) return;
  wire.SendMessage(std::string("\0\x01\x1c", 3));
  wire.SendMessage(std::string(1, '\0') + PlaceIn(request.target) +
                   request.target.substr(request.target.find('?')));
  while (wire.ReadMessage()) {
  }
}

bool FakeCluster::Converse(const testing::FakeRequest& request, testing::FakeWire& wire) {
  std::string hello;
  std::string answer;
  uint16_t port = 0;
  {
    const MutexLock lock(&mutex_);
    if (!request.target.ends_with(fmt::format("ports={}", port_))) return false;
    port = port_;
    hello = hello_;
    answer = answer_;
  }
  if (!wire.AcceptWebSocket("v4.channel.k8s.io")) return true;
  // Each message begins with its channel: data or errors, which begin with the port.
  for (const char channel : {'\0', '\1'}) {
    wire.SendMessage({channel, static_cast<char>(port & 0xff), static_cast<char>(port >> 8)});
  }
  wire.SendMessage(std::string(1, '\0') + hello);
  bool answered = false;
  while (const std::optional<std::string> message = wire.ReadMessage()) {
    const MutexLock lock(&mutex_);
    heard_ += message->substr(std::min<size_t>(1, message->size()));
    if (answered || heard_.find('\n') == std::string::npos) continue;
    answered = true;
    wire.SendMessage(std::string(1, '\0') + answer);
  }
  return true;
}

std::string FakeCluster::Answer(const testing::FakeRequest& request) {
  const MutexLock lock(&mutex_);
  const json body = json::parse(request.body, nullptr, false);
  if (request.target.find("selfsubjectaccessreviews") != std::string::npos) return Review(body);
  std::string place = PlaceIn(request.target);
  if (request.method == "POST") place += "/" + body["metadata"]["name"].get<std::string>();
  if (failures_[place] > 0) {
    --failures_[place];
    return Failure(503, "ServiceUnavailable");
  }
  if (request.method == "POST") {
    const auto rival = rivals_.extract(place);
    if (!rival.empty()) {
      for (const auto& [made, object] : rival.mapped()) objects_[made] = object;
    }
    if (objects_.contains(place)) return Failure(409, "AlreadyExists");
  }
  if (request.method != "GET") changes_.push_back(request.method + " " + place);
  if (request.method == "POST" || request.method == "PATCH") {
    json object = body;
    object["metadata"]["uid"] = fmt::format("uid-{}", changes_.size());
    if (body["kind"] == "Pod" && !pod_status_.is_null()) object["status"] = pod_status_;
    if (body["kind"] == "Job" && !job_status_.is_null()) object["status"] = job_status_;
    objects_[place] = object;
    return testing::Answer(201, object.dump());
  }
  if (place.find('/') == std::string::npos) return List(place);
  const auto found = objects_.find(place);
  if (found == objects_.end()) return Failure(404, "NotFound");
  const json object = found->second;
  if (object.is_string()) return testing::Answer(200, object.get<std::string>());
  if (request.method == "DELETE") objects_.erase(found);
  return testing::Answer(200, object.dump());
}

std::string FakeCluster::Review(const json& body) const {
  const json& asked = body["spec"]["resourceAttributes"];
  std::string right = asked["verb"].get<std::string>() + " " + asked["resource"].get<std::string>();
  if (asked.contains("subresource")) right += "/" + asked["subresource"].get<std::string>();
  return testing::Answer(201, json{{"status", {{"allowed", !denied_.contains(right)}}}}.dump());
}

std::string FakeCluster::List(const std::string& plural) const {
  json items = json::array();
  for (const auto& [place, object] : objects_) {
    if (place.starts_with(plural + "/") && object.is_object()) items.push_back(object);
  }
  return testing::Answer(200,
                         json{{"metadata", {{"resourceVersion", "1"}}}, {"items", items}}.dump());
}

}  // namespace muster::cluster
