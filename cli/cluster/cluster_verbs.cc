#include "cli/cluster/cluster_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/cluster_access.h"
#include "cli/cluster/job_watch.h"
#include "cli/show/fit.h"
#include "cli/show/output.h"
#include "cli/steer/patience.h"
#include "job/in_cluster.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/labels.h"
#include "proto/fields/json.h"

namespace muster::cluster {
namespace {

using kubernetes::Resource;
using kubernetes::TextAt;
using nlohmann::json;

std::string LabelOf(const json& object, std::string_view label) {
  return TextAt(object, {"metadata", "labels", label});
}

std::string_view WordOf(const JobLook& look) {
  switch (look.stage) {
    case JobStage::kWaiting:
      return "waiting";
    case JobStage::kPending:
      return "pending";
    case JobStage::kRunning:
      return "running";
    case JobStage::kEnded:
      return look.outcome;
    case JobStage::kDeleted:
      return "being deleted";
    case JobStage::kReplaced:
    case JobStage::kAbsent:
      break;
  }
  return "-";
}

}  // namespace

std::vector<ListedClusterJob> JobsOf(const std::vector<json>& jobs, const std::vector<json>& pods) {
  std::map<std::string, ListedClusterJob> listed;
  for (const json& job : jobs) {
    const std::string name = LabelOf(job, kubernetes::kJobLabel);
    if (name.empty()) continue;
    ListedClusterJob row{.name = name};
    std::vector<json> masters;
    for (const json& pod : pods) {
      if (LabelOf(pod, kubernetes::kJobLabel) != name) continue;
      const std::string role = LabelOf(pod, kubernetes::kRoleLabel);
      const bool runs = TextAt(pod, {"status", "phase"}) == "Running";
      if (role == "master") masters.push_back(pod);
      if (role == "worker" && runs) ++row.workers;
      if (role == "ps" && runs) ++row.servers;
    }
    row.look = ReadJobLook(job, masters);
    listed[name] = std::move(row);
  }
  std::vector<ListedClusterJob> rows;
  for (auto& [name, row] : listed) rows.push_back(std::move(row));
  return rows;
}

std::string ListText(const std::vector<ListedClusterJob>& jobs, const std::string& where) {
  if (jobs.empty()) return fmt::format("there is no job in {}\n", where);
  std::vector<std::vector<std::string>> rows = {{"NAME", "STATE", "WORKERS", "SERVERS", "REMARK"}};
  for (const ListedClusterJob& job : jobs) {
    rows.push_back({Printable(job.name), std::string(WordOf(job.look)), std::to_string(job.workers),
                    std::to_string(job.servers), job.look.why.empty() ? "-" : job.look.why});
  }
  return FormatTable(rows);
}

json ListToJson(const std::vector<ListedClusterJob>& jobs) {
  json list = json::array();
  for (const ListedClusterJob& job : jobs) {
    json row = {{"name", job.name},
                {"state", WordOf(job.look)},
                {"pod", nullptr},
                {"workers_running", job.workers},
                {"servers_running", job.servers},
                {"exit_code", nullptr},
                {"remark", job.look.why}};
    if (!job.look.pod.empty()) row["pod"] = job.look.pod;
    if (job.look.exit_code) row["exit_code"] = *job.look.exit_code;
    list.push_back(std::move(row));
  }
  return {{"jobs", std::move(list)}};
}

int ListOnCluster(const ClusterTarget& target, OutputFormat output) {
  const absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Open(target, target.ns);
  if (!cluster.ok()) return PrintError(Message(cluster.status()), kExitUsage);
  const kubernetes::Selection selection{
      .labels = fmt::format("app.kubernetes.io/name=muster,{}", kubernetes::kJobLabel)};
  const absl::StatusOr<kubernetes::ObjectList> jobs =
      (*cluster)->client().List(Resource::kJobs, (*cluster)->ns(), selection);
  if (!jobs.ok()) return PrintError(Message(jobs.status()), kExitUnreachable);
  const absl::StatusOr<kubernetes::ObjectList> pods =
      (*cluster)->client().List(Resource::kPods, (*cluster)->ns(), selection);
  if (!pods.ok()) return PrintError(Message(pods.status()), kExitUnreachable);
  const std::vector<ListedClusterJob> rows = JobsOf(jobs->items, pods->items);
  PrintData(output == OutputFormat::kJson ? JsonText(ListToJson(rows), 2) + "\n"
                                          : ListText(rows, (*cluster)->Where()));
  return kExitSucceeded;
}

int WaitForEndOnCluster(const steer::WaitOptions& options) {
  const absl::StatusOr<JobPlace> place = PlaceOf(options.query.target);
  if (!place.ok()) return PrintError(Message(place.status()), kExitUsage);
  const absl::StatusOr<std::unique_ptr<Cluster>> cluster =
      Cluster::Open(options.query.target.cluster, place->ns);
  if (!cluster.ok()) return PrintError(Message(cluster.status()), kExitUsage);
  std::optional<std::chrono::seconds> limit;
  if (options.timeout_s) limit = std::chrono::seconds(*options.timeout_s);
  steer::Patience patience = steer::Patience::OfAPerson(limit, &(*cluster)->clock());
  std::string awaited;  // the UID of the Job
  while (true) {
    absl::StatusOr<JobLook> look = LookAt(cluster->get(), place->job);
    if (look.ok() && awaited.empty()) awaited = look->uid;
    if (look.ok()) look = LookOfJob(awaited, *std::move(look));
    // If the API server is away for a while, that says nothing about the job.
    const bool is_away =
        absl::IsUnavailable(look.status()) || absl::IsDeadlineExceeded(look.status());
    if (!look.ok() && !is_away) return PrintError(Message(look.status()), kExitUnreachable);
    const bool is_gone =
        look.ok() && (look->stage == JobStage::kAbsent || look->stage == JobStage::kReplaced);
    if (is_gone) {
      return PrintError(CheckRuns(place->job, (*cluster)->Where(), *look));
    }
    if (look.ok() && look->stage == JobStage::kEnded) {
      PrintData(options.query.output == OutputFormat::kJson
                    ? JsonText({{"reached", options.awaited}, {"state", look->outcome}}) + "\n"
                    : fmt::format("{} {}\n", place->job, Describe(*look)));
      return ExitCodeOf(*look);
    }
    const std::string state = look.ok() ? Describe(*look) : std::string(Message(look.status()));
    if (!patience.Wait(fmt::format("the end of {} ({})", place->job, state))) {
      return PrintError(
          fmt::format("the end was not reached within {} s; {}", limit->count(), state),
          kExitFailed);
    }
  }
}

int StacksOnCluster(const StacksOptions& options) {
  const absl::StatusOr<JobPlace> place = PlaceOf(options.query.target);
  if (!place.ok()) return PrintError(Message(place.status()), kExitUsage);
  const absl::StatusOr<std::unique_ptr<Cluster>> cluster =
      Cluster::Open(options.query.target.cluster, place->ns);
  if (!cluster.ok()) return PrintError(Message(cluster.status()), kExitUsage);
  const bool in_job_pod = options.node == "master" || options.node == "scaler";
  const std::string selection = in_job_pod
                                    ? fmt::format("{}={},{}=master", kubernetes::kJobLabel,
                                                  place->job, kubernetes::kRoleLabel)
                                    : fmt::format("{}={},{}={}", kubernetes::kJobLabel, place->job,
                                                  kubernetes::kNodeLabel, options.node);
  // The state directory says where a process is, but pods of servers and workers have none.
  const std::string looks =
      in_job_pod ? fmt::format(
                       "run `kubectl --namespace {} exec POD -- muster stacks {} --state-dir "
                       "{}/{}`",
                       (*cluster)->ns(), options.node, kInClusterState, place->job)
                 : fmt::format(
                       "run `kubectl --namespace {} exec POD -- sh -c 'kill -QUIT 1'`: then they "
                       "are in its log, `muster logs {} --job {} --on kubernetes`",
                       (*cluster)->ns(), options.node, place->job);
  return PrintError(
      fmt::format("only a process inside the pod may look at stacks. Find the pod with `kubectl "
                  "--namespace {} get pods --selector {}`, and {}",
                  (*cluster)->ns(), selection, looks),
      kExitUsage);
}

}  // namespace muster::cluster
