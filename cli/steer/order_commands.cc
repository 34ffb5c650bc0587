#include "cli/steer/order_commands.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "admin/admin_client.h"
#include "admin/shard_id.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/show/fit.h"
#include "cli/state/job_source.h"
#include "cli/state/scaler_link.h"
#include "cli/steer/event_text.h"
#include "cli/steer/scaler_call.h"
#include "proto/fields/json.h"
#include "proto/messages/node_state.h"
#include "scaler/model/model_json.h"

namespace muster::steer {
namespace {

using scaler::rest::Event;
using scaler::rest::RestClient;

/// If there are more shards, the order goes to the master, which has no limit.
constexpr size_t kShardsPerOrder = 1'000;

void PrintJsonData(const nlohmann::json& json) {
  PrintData(JsonText(json, 2) + "\n");
}

/// " (event #12)" if the scaler took the order.
std::string EventRemark(const std::optional<Event>& event) {
  return event.has_value() ? fmt::format(" (event #{})", event->id) : "";
}

/// Adds "event": 12 if the scaler took the order.
nlohmann::json WithEvent(nlohmann::json json, const std::optional<Event>& event) {
  if (event.has_value()) json["event"] = event->id;
  return json;
}

/// Says why shards cannot be tried again now, and what to do instead.
absl::Status CannotRetry(const QueryOptions& options, const absl::Status& away) {
  if (!absl::IsNotFound(away)) return away;
  const bool by_directory = !options.target.state_directory.empty();
  return absl::NotFoundError(fmt::format(
      "no job runs{}, so there is none that could try shards again: `muster run {} --retry-failed` "
      "continues the job and tries all its FAILED shards again",
      by_directory ? fmt::format(" with the state directory {}", options.target.state_directory)
                   : "",
      by_directory ? "JOB" : JobFileOf(options.target)));
}

int PrintDrain(const DrainOptions& options, const std::string& drain, uint64_t left,
               const std::optional<Event>& event) {
  if (options.query.output == OutputFormat::kJson) {
    PrintJsonData(WithEvent({{"node", options.node}, {"drain", drain}, {"left", left}}, event));
  } else {
    PrintData(fmt::format("{}: {}{}{}\n", options.node, drain,
                          left == 0 ? "" : fmt::format(", {} left", left), EventRemark(event)));
  }
  return kExitSucceeded;
}

/// Follows a drain that the scaler has begun.
int WatchDrain(const DrainOptions& options, const std::optional<Event>& event, Patience* patience) {
  while (true) {
    const absl::StatusOr<RestClient> client = FindScaler(options.query.target);
    if (!client.ok() && !absl::IsUnavailable(client.status())) return PrintError(client.status());
    std::string remark;
    if (client.ok()) {
      const absl::StatusOr<scaler::rest::Node> node = client->GetNode(options.node);
      if (!node.ok() && !IsUnreachable(node.status())) return PrintRefusal(node.status());
      if (node.ok() && node->drain == DrainState::kDrained) {
        return PrintDrain(options, "drained", node->drain_left, event);
      }
      // A worker that has left may be gone before the master calls it drained. It holds no work, so
      // it is drained.
      if (node.ok() && node->state == NodeState::kFinished)
        return PrintDrain(options, "drained", 0, event);
      // The scaler has taken the order, even if the master does not show it yet.
      if (node.ok() && !options.wait) {
        return PrintDrain(options, "draining", node->drain_left, event);
      }
      if (node.ok() && node->drain_left > 0) remark = fmt::format(" ({} left)", node->drain_left);
    }
    patience->Wait(fmt::format("{} to be drained{}", options.node, remark));
  }
}

int DrainNodeByMaster(const DrainOptions& options, AdminClient* client, Patience* patience) {
  v1::DrainNodeRequest request;
  request.set_node(options.node);
  request.set_timeout_ms(uint64_t{options.timeout_s} * 1'000);
  while (true) {
    // The request is repeated, because a restarted master has forgotten it.
    const absl::StatusOr<v1::DrainNodeResponse> response = client->DrainNode(request);
    const bool again = options.wait && (response.ok() ? response->drain() != "drained"
                                                      : IsUnreachable(response.status()));
    if (again) {
      patience->Wait(fmt::format("{} to be drained", options.node));
      continue;
    }
    if (!response.ok()) return PrintError(response.status());
    return PrintDrain(options, response->drain(), response->left(), std::nullopt);
  }
}

int ResumeNodeOf(const DrainOptions& options, AdminClient* client) {
  v1::ResumeNodeRequest request;
  request.set_node(options.node);
  const absl::Status status = client->ResumeNode(request);
  if (!status.ok()) return PrintError(status);
  if (options.query.output == OutputFormat::kJson) {
    PrintJsonData({{"node", options.node}, {"drain", ToString(DrainState::kNone)}, {"left", 0}});
  } else {
    PrintData(fmt::format("{}: its drain is taken back\n", options.node));
  }
  return kExitSucceeded;
}

int DrainOneNode(const DrainOptions& options) {
  const SystemClock clock;
  Patience patience = Patience::OfAPerson(std::nullopt, &clock);
  // The scaler has only the job's time limit, so another one must go to the master.
  if (!options.undo && options.timeout_s == 0) {
    const absl::StatusOr<std::optional<Event>> event =
        TryOrder(options.query, {scaler::EndNode{options.node}, options.reason});
    if (!event.ok()) return PrintRefusal(event.status());
    if (event->has_value()) return WatchDrain(options, *event, &patience);
  }
  const absl::StatusOr<std::unique_ptr<AdminClient>> client = ConnectToMaster(options.query);
  if (!client.ok()) return PrintError(client.status());
  return options.undo ? ResumeNodeOf(options, client->get())
                      : DrainNodeByMaster(options, client->get(), &patience);
}

std::string PoliciesText(const scaler::rest::PolicyList& list) {
  std::vector<std::vector<std::string>> rows = {
      {"POLICY", "STATE", "DECISIONS", "HELD BACK", "COOLDOWN", "LAST", "WHAT IT DOES"}};
  for (const scaler::rest::Policy& policy : list.policies) {
    rows.push_back({policy.name,
                    policy.paused    ? "paused"
                    : policy.dry_run ? "dry run"
                                     : "active",
                    CountText(policy.decisions), CountText(policy.refused),
                    fmt::format("{:g} s", policy.cooldown_s),
                    policy.last_event_id == 0 ? "-" : fmt::format("#{}", policy.last_event_id),
                    policy.summary});
  }
  return FormatTable(rows);
}

}  // namespace

int OrderCommand(const GivenOrder& given) {
  if (!given.order.ok()) return PrintError(given.order.status());
  const OrderOptions& options = given.options;
  const absl::StatusOr<RestClient> client = FindScaler(options.query.target);
  if (!client.ok()) return PrintError(client.status());
  const absl::StatusOr<Event> event = client->Give({*given.order, options.reason});
  if (!event.ok()) return PrintRefusal(event.status());
  const bool text = options.query.output == OutputFormat::kText;
  if (text) PrintData(EventLine(*event));
  std::optional<Event> outcome;
  absl::Status waited;
  if (options.wait) {
    const SystemClock clock;
    Patience patience = Patience::OfAPerson(std::chrono::seconds(options.timeout_s), &clock);
    absl::StatusOr<Event> found = AwaitOutcome(
        [&] { return ExplainNow(options.query.target, event->id); }, event->id, &patience);
    waited = found.status();
    if (found.ok()) outcome = *std::move(found);
  }
  if (!text) {
    nlohmann::json json = {{"event", ToJson(*event)}};
    if (options.wait) json["outcome"] = outcome ? ToJson(*outcome) : nlohmann::json(nullptr);
    PrintJsonData(json);
  } else if (outcome.has_value()) {
    PrintData(EventLine(*outcome));
  }
  // The order is being carried out. That its outcome is unknown does not mean that there is no job.
  return waited.ok() ? kExitSucceeded : PrintError(Message(waited), kExitFailed);
}

int DrainCommand(const DrainOptions& options) {
  if (options.node.empty() && (options.undo || options.wait || options.timeout_s > 0)) {
    return PrintError(
        "--undo, --wait and --timeout are for a node; name it, for example --node worker-1",
        kExitUsage);
  }
  if (!options.node.empty()) return DrainOneNode(options);
  const absl::StatusOr<std::optional<Event>> event =
      TryOrder(options.query, {scaler::DrainJob{}, options.reason});
  if (!event.ok()) return PrintRefusal(event.status());
  if (!event->has_value()) {
    absl::StatusOr<std::unique_ptr<AdminClient>> client = ConnectToMaster(options.query);
    if (!client.ok()) return PrintError(client.status());
    const absl::Status status = (*client)->Drain();
    if (!status.ok()) return PrintError(status);
  }
  if (options.query.output == OutputFormat::kJson) {
    PrintJsonData(WithEvent({{"drain", "asked"}}, *event));
  } else {
    PrintData(fmt::format(
        "draining: no new shards are handed out; `muster run` ends when all is committed{}\n",
        EventRemark(*event)));
  }
  return kExitSucceeded;
}

int RetryCommand(const RetryOptions& options) {
  v1::RetryShardsRequest request;
  for (const std::string& text : options.ids) {
    absl::StatusOr<v1::ShardId> id = ParseShardId(text);
    if (!id.ok()) return PrintError(id.status());
    *request.add_shards() = *id;
  }
  absl::StatusOr<std::optional<Event>> event = std::nullopt;
  if (options.ids.size() <= kShardsPerOrder) {
    event = TryOrder(options.query, {scaler::RetryShards{options.ids}, ""});
  }
  if (!event.ok()) return PrintRefusal(event.status());
  std::optional<uint64_t> retried;
  if (!options.ids.empty()) retried = options.ids.size();
  if (event->has_value()) {
    for (const scaler::rest::Evidence& figure : (*event)->evidence) {
      if (figure.name == "shards") retried = static_cast<uint64_t>(figure.value);
    }
  } else {
    absl::StatusOr<std::unique_ptr<AdminClient>> client = ConnectToMaster(options.query);
    if (!client.ok()) return PrintError(CannotRetry(options.query, client.status()));
    absl::StatusOr<v1::RetryShardsResponse> response = (*client)->RetryShards(request);
    if (!response.ok()) return PrintError(response.status());
    retried = response->retried();
  }
  if (options.query.output == OutputFormat::kJson) {
    PrintJsonData(
        WithEvent({{"retried", retried ? nlohmann::json(*retried) : nlohmann::json()}}, *event));
  } else {
    PrintData(fmt::format("{} will be tried again{}\n",
                          retried ? CountText(*retried, "shard") : "all FAILED shards",
                          EventRemark(*event)));
  }
  return kExitSucceeded;
}

int PoliciesCommand(const QueryOptions& options) {
  const absl::StatusOr<RestClient> client = FindScaler(options.target);
  if (!client.ok()) return PrintError(client.status());
  const absl::StatusOr<scaler::rest::PolicyList> policies = client->Policies();
  if (!policies.ok()) return PrintRefusal(policies.status());
  if (options.output == OutputFormat::kJson) {
    PrintJsonData(ToJson(*policies));
  } else {
    PrintData(PoliciesText(*policies));
  }
  return kExitSucceeded;
}

}  // namespace muster::steer
