#include "tests/kubernetes/pods/scripted_book.h"

#include <fmt/format.h>

#include <utility>

#include "kubernetes/model/api_error.h"
#include "kubernetes/pods/pod_body.h"
#include "tests/support/status_matchers.h"

namespace muster::testing {

using kubernetes::PodAnswer;
using kubernetes::PodCall;

nlohmann::json MinimalTemplate() {
  return {
      {"spec", {{"containers", nlohmann::json::array({{{"name", "muster"}, {"image", "i"}}})}}}};
}

kubernetes::PodRun TestRun() {
  return {.job = "flights", .ns = "team", .run = "run-1"};
}

PodAnswer Carry(const PodCall& call, ModelCluster* cluster) {
  ModelCluster::Reply reply;
  switch (call.kind) {
    case PodCall::Kind::kCreate:
      reply = cluster->Create(kubernetes::PodBody(
          TestRun(), {.worker = MinimalTemplate(), .server = MinimalTemplate()}, call.start));
      break;
    case PodCall::Kind::kGet:
      reply = cluster->Get(call.name);
      break;
    case PodCall::Kind::kDelete:
      reply = cluster->Delete(call.name,
                              kubernetes::DeleteBody({.uid = call.uid, .grace = call.grace}));
      break;
    case PodCall::Kind::kResize:
      reply = cluster->Resize(
          call.name, kubernetes::ResizePatch(call.uid, call.container, call.limits, call.requests));
      break;
    case PodCall::Kind::kLookForJob:
      return {.id = call.id, .job_is_there = cluster->job_is_there};
  }
  PodAnswer answer{.id = call.id, .status = StatusOf(reply)};
  const bool has_pod = call.kind == PodCall::Kind::kCreate || call.kind == PodCall::Kind::kGet;
  if (answer.status.ok() && has_pod) answer.pod = kubernetes::ReadPodFacts(reply.body);
  return answer;
}

std::deque<PodCall>& ScriptedBook::calls() {
  for (PodCall& call : book_.TakeCalls()) calls_.push_back(std::move(call));
  return calls_;
}

void ScriptedBook::CarryNext(bool answer_is_lost) {
  ASSERT_FALSE(calls().empty());
  const PodCall call = std::move(calls_.front());
  calls_.pop_front();
  ++carried;
  PodAnswer answer = Carry(call, cluster_);
  if (answer_is_lost) {
    answer = {.id = call.id, .status = kubernetes::ConnectionError("the connection broke")};
  } else if (answer.status.ok() && !call.name.empty()) {
    // As the watcher does it: an answer counts before the watch tells of it.
    const auto pod = cluster_->Get(call.name);
    if (pod.code == 200 && kubernetes::ReadPodFacts(pod.body).run == TestRun().run) {
      Feed(cache_.Applied(pod.body));
    }
  }
  book_.Answered(answer, now);
}

void ScriptedBook::ReadWatch(size_t events_max) {
  for (; next_event_ < cluster_->events().size() && events_max > 0; --events_max) {
    const nlohmann::json& event = cluster_->events()[next_event_++];
    // The selection of labels.
    if (kubernetes::ReadPodFacts(event["object"]).run != TestRun().run) continue;
    const auto changes = cache_.Received(event);
    ASSERT_THAT(changes, IsOk());
    Feed(*changes);
  }
}

void ScriptedBook::Feed(const kubernetes::WatchCache::Changes& changes) {
  for (const kubernetes::ObjectChange& change : changes) {
    const kubernetes::PodFacts facts = kubernetes::ReadPodFacts(*change.object);
    if (change.kind == kubernetes::ObjectChange::Kind::kDeleted) {
      book_.Gone(facts, now);
    } else {
      book_.Seen(facts, now);
    }
  }
}

std::vector<FoundNode> ScriptedBook::Find() {
  std::vector<nlohmann::json> items;
  std::vector<kubernetes::PodFacts> pods;
  for (const auto& [name, pod] : cluster_->pods()) {
    if (kubernetes::ReadPodFacts(pod).run != TestRun().run) continue;
    items.push_back(pod);
    pods.push_back(kubernetes::ReadPodFacts(pod));
  }
  cache_.Listed(std::move(items), cluster_->version());
  next_event_ = cluster_->events().size();
  return book_.Find(pods, now);
}

void ScriptedBook::Settle() {
  // Ends, because without time nothing is tried twice.
  while (!calls().empty() || next_event_ < cluster_->events().size()) {
    if (!calls_.empty()) CarryNext();
    ReadWatch();
  }
}

std::vector<HostReport> ScriptedBook::Reports() {
  return book_.TakeReports();
}

std::vector<std::string> Texts(const std::vector<HostReport>& reports) {
  struct Teller {
    std::string operator()(const NodeStarted& told) { return "start " + told.node; }
    std::string operator()(const NodeHeld& told) {
      return fmt::format("held {} {}{}{}", told.node, static_cast<int>(told.wait),
                         told.reason.empty() ? "" : " ", told.reason);
    }
    std::string operator()(const NodeResized& told) {
      return fmt::format("resized {} {}", told.node, ToString(told.answer));
    }
    std::string operator()(const NodeExited& told) {
      return fmt::format("exit {} {}{}", told.node, ToString(told.exit),
                         told.disruption == Disruption::kNone
                             ? ""
                             : fmt::format(" disruption {}", static_cast<int>(told.disruption)));
    }
  };
  std::vector<std::string> texts;
  for (const HostReport& report : reports) texts.push_back(std::visit(Teller{}, report));
  return texts;
}

}  // namespace muster::testing
