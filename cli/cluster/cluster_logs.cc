#include "cli/cluster/cluster_logs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/cluster_access.h"
#include "cli/cluster/job_watch.h"
#include "cli/show/log_lines.h"
#include "cli/show/moment.h"
#include "cli/show/output.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/labels.h"

namespace muster::cluster {
namespace {

using kubernetes::TextAt;
using nlohmann::json;

constexpr uint32_t kLogLinesMax = 100'000;
constexpr std::chrono::hours kFollowLength{24};
constexpr std::chrono::seconds kNewPodsInterval{2};

std::string NodeOf(const json& pod) {
  return TextAt(pod, {"metadata", "labels", kubernetes::kRoleLabel}) == "master"
             ? "master"
             : TextAt(pod, {"metadata", "labels", kubernetes::kNodeLabel});
}

/// Several pods of a node follow each other, and each begins with a new line.
LogForm FormOf(const LogsOptions& options) {
  if (options.query.output == OutputFormat::kJson) return LogForm::kJson;
  return options.nodes.size() == 1 ? LogForm::kLines : LogForm::kWithNode;
}

absl::StatusOr<kubernetes::LogQuery> QueryOf(const LogsOptions& options, const Clock& clock) {
  kubernetes::LogQuery query{.container = "muster",
                             .tail_lines = std::min(LinesOfEach(options), kLogLinesMax)};
  if (options.since.empty()) return query;
  MUSTER_ASSIGN_OR_RETURN(const WallTime since, ParseSince(options.since, clock.Wall()));
  query.since = std::max(std::chrono::seconds(1),
                         std::chrono::ceil<std::chrono::seconds>(clock.Wall() - since));
  return query;
}

bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

/// Follows each pod in its own thread until the job ends.
absl::Status FollowAll(Cluster* cluster, const std::string& job, const LogsOptions& options,
                       const kubernetes::LogQuery& first) {
  const LogForm form = FormOf(options);
  std::set<std::string> known;
  std::vector<std::jthread> threads;
  bool is_first = true;
  bool is_away = false;
  while (true) {
    const absl::StatusOr<JobLook> look = LookAt(cluster, job);
    const absl::StatusOr<std::vector<json>> pods =
        look.ok() ? PodsOf(cluster, job) : absl::StatusOr<std::vector<json>>(look.status());
    // If the API server is away for a while, that says nothing about the job.
    if (IsAway(pods.status())) {
      if (!std::exchange(is_away, true)) {
        PrintNote(fmt::format("{}; waiting for it", Message(pods.status())));
      }
      SleepFor(kNewPodsInterval);
      continue;
    }
    MUSTER_RETURN_IF_ERROR(pods.status());
    is_away = false;
    for (const LoggedPod& one : LoggedPods(*pods, options.nodes)) {
      if (!known.insert(one.pod).second) continue;
      kubernetes::LogQuery query = first;
      if (!is_first) query.tail_lines.reset();
      threads.emplace_back([=](const std::stop_token& stop) {
        LogLines lines(one.node, form);
        const absl::Status status = cluster->client().FollowLogs(
            cluster->ns(), one.pod, query, kFollowLength,
            [&](std::string_view bytes) {
              PrintData(lines.Take(bytes));
              return absl::OkStatus();
            },
            stop);
        PrintData(lines.Finish());
        if (!status.ok() && !stop.stop_requested()) {
          PrintNote(fmt::format("{}: {}", one.node, Message(status)));
        }
      });
    }
    is_first = false;
    if (look->stage == JobStage::kEnded || look->stage == JobStage::kAbsent) break;
    SleepFor(kNewPodsInterval);
  }
  // The containers have ended, so their logs end by themselves.
  for (std::jthread& thread : threads) thread.join();
  return absl::OkStatus();
}

/// Reports logs that are not available, and prints the others.
absl::Status PrintAll(Cluster* cluster, const std::vector<LoggedPod>& shown,
                      const kubernetes::LogQuery& query, LogForm form) {
  size_t missing = 0;
  for (const LoggedPod& one : shown) {
    const absl::StatusOr<std::string> text = cluster->client().Logs(cluster->ns(), one.pod, query);
    if (text.ok()) {
      LogLines lines(one.node, form);
      PrintData(lines.Take(*text) + lines.Finish());
      continue;
    }
    ++missing;
    PrintNote(fmt::format("{} ({}): {}", one.node, one.pod, Message(text.status())));
  }
  if (missing == 0) return absl::OkStatus();
  return absl::DataLossError(fmt::format("{} of {} logs could not be had", missing, shown.size()));
}

}  // namespace

std::vector<LoggedPod> LoggedPods(const std::vector<json>& pods,
                                  const std::vector<std::string>& nodes) {
  std::vector<std::pair<std::string, LoggedPod>> found;
  for (const json& pod : pods) {
    const std::string node = NodeOf(pod);
    const bool is_wanted = nodes.empty() || std::ranges::find(nodes, node) != nodes.end();
    bool has_begun = false;
    for (const json& status : kubernetes::ElementsAt(pod, {"status", "containerStatuses"})) {
      has_begun = has_begun || !kubernetes::ValueAt(status, {"state", "waiting"}).is_object();
    }
    if (node.empty() || !is_wanted || !has_begun) continue;
    found.emplace_back(TextAt(pod, {"metadata", "creationTimestamp"}),
                       LoggedPod{.node = node, .pod = kubernetes::IdentityOf(pod).name});
  }
  std::ranges::sort(found, {}, [](const auto& one) {
    return std::tuple(one.second.node, one.first, one.second.pod);
  });
  std::vector<LoggedPod> logged;
  for (auto& [age, one] : found) logged.push_back(std::move(one));
  return logged;
}

int LogsOnCluster(const LogsOptions& options) {
  const absl::StatusOr<JobPlace> place = PlaceOf(options.query.target);
  if (!place.ok()) return PrintError(Message(place.status()), kExitUsage);
  const absl::StatusOr<std::unique_ptr<Cluster>> cluster =
      Cluster::Open(options.query.target.cluster, place->ns);
  if (!cluster.ok()) return PrintError(Message(cluster.status()), kExitUsage);
  const absl::StatusOr<kubernetes::LogQuery> query = QueryOf(options, (*cluster)->clock());
  if (!query.ok()) return PrintError(Annotate(query.status(), "--since"));
  const absl::StatusOr<std::vector<json>> pods = PodsOf(cluster->get(), place->job);
  if (!pods.ok()) return PrintError(Message(pods.status()), kExitUnreachable);
  const std::vector<LoggedPod> shown = LoggedPods(*pods, options.nodes);
  for (const std::string& node : options.nodes) {
    if (std::ranges::find(shown, node, &LoggedPod::node) != shown.end()) continue;
    std::set<std::string> others;
    for (const LoggedPod& one : LoggedPods(*pods, {})) others.insert(one.node);
    return PrintError(
        fmt::format("there is no log of node '{}'; nodes with a log: {}. The scaler "
                    "and the master write into the log of 'master'",
                    node, others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", "))),
        kExitUsage);
  }
  if (shown.empty() && !options.follow) {
    return PrintError(
        fmt::format("no pod of the job {} in {} has a log", place->job, (*cluster)->Where()),
        kExitUnreachable);
  }
  const absl::Status status = options.follow
                                  ? FollowAll(cluster->get(), place->job, options, *query)
                                  : PrintAll(cluster->get(), shown, *query, FormOf(options));
  if (status.ok()) return kExitSucceeded;
  return PrintError(Message(status), absl::IsDataLoss(status) ? kExitFailed : kExitUnreachable);
}

}  // namespace muster::cluster
