#include "job/file/job_rules.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/status.h"
#include "base/words/limits.h"
#include "job/file/name_rules.h"
#include "job/file/scalars.h"
#include "job/metric_choice.h"
#include "job/security.h"

namespace muster::job_file {
namespace {

void CheckDatasets(const JobSpec& job, std::vector<BrokenRule>* broken) {
  std::set<std::string> names;
  for (size_t i = 0; i < job.datasets.size(); ++i) {
    const DatasetSpec& dataset = job.datasets[i];
    const std::string path = fmt::format("spec.datasets[{}].name", i);
    if (!dataset.name.empty() && !names.insert(dataset.name).second) {
      broken->push_back(
          {{path},
           fmt::format("two datasets have the name '{}'; give each its own", dataset.name)});
    }
  }
}

/// What a predict dataset needs, and what others may not have.
void CheckOutputs(const JobSpec& job, std::vector<BrokenRule>* broken) {
  std::map<std::string, std::string> dataset_of;  // by output
  for (size_t i = 0; i < job.datasets.size(); ++i) {
    const DatasetSpec& dataset = job.datasets[i];
    const auto say = [&](std::string_view field, std::string what) {
      broken->push_back({{fmt::format("spec.datasets[{}].{}", i, field)}, std::move(what)});
    };
    if (dataset.mode != DatasetMode::kPredict) {
      if (!dataset.output.empty()) say("output", "only a dataset of mode predict has outputs");
      continue;
    }
    if (HasGroup(job)) {
      say("mode",
          "members of a synchronous group cannot predict; export the weights, and predict "
          "in a job without spec.group");
    }
    if (dataset.shuffle != Shuffle::kNone) {
      say("shuffle", "outputs are in the order of the records; remove this field");
    }
    if (dataset.output.empty()) {
      say("output", "is missing; name the directory of the outputs, or s3://bucket/prefix");
      continue;
    }
    if (IsS3Place(dataset.output)) {
      const absl::Status place = PlaceWithOptions(dataset.output, {}).status();
      if (!place.ok()) say("output", std::string(Message(place)));
    }
    const auto [other, added] = dataset_of.emplace(dataset.output, dataset.name);
    if (!added) {
      say("output", fmt::format("is also that of dataset '{}'; give each its own", other->second));
    }
  }
}

void CheckEpochEnds(const JobSpec& job, std::vector<BrokenRule>* broken) {
  const JobSpec::Training& training = job.training;
  const auto check = [&](const std::string& path, const std::string& metric) {
    if (metric.empty()) return;
    const auto choice = ChooseMetric(job, metric);
    if (!choice.ok()) broken->push_back({{path}, std::string(choice.status().message())});
  };
  check("spec.training.keep.best", training.keep_best);
  check("spec.training.stopEarly.metric", training.stop_early_metric);
  const bool streams = std::ranges::any_of(job.datasets, [](const DatasetSpec& dataset) {
    return std::holds_alternative<TopicSpec>(dataset.source);
  });
  if (!streams) return;
  if (!training.keep_best.empty() || training.keep_every > 0) {
    broken->push_back({{"spec.training.keep"}, "a dataset is a topic, which has no epochs"});
  }
  if (!training.stop_early_metric.empty()) {
    broken->push_back({{"spec.training.stopEarly"}, "a dataset is a topic, which has no epochs"});
  }
}

/// Train datasets of files are mixed by weights, or none of them has one.
void CheckWeights(const JobSpec& job, std::vector<BrokenRule>* broken) {
  const bool weighted = std::ranges::any_of(
      job.datasets, [](const DatasetSpec& dataset) { return dataset.weight > 0; });
  if (!weighted) return;
  for (size_t i = 0; i < job.datasets.size(); ++i) {
    const DatasetSpec& dataset = job.datasets[i];
    const auto say = [&](std::string what) {
      broken->push_back({{fmt::format("spec.datasets[{}].weight", i)}, std::move(what)});
    };
    const bool topic = std::holds_alternative<TopicSpec>(dataset.source);
    if (dataset.mode == DatasetMode::kTrain && !topic) {
      if (dataset.weight == 0) {
        say(fmt::format("another train dataset has a weight, so '{}' needs one, too",
                        dataset.name));
      }
    } else if (dataset.weight > 0) {
      say(topic ? "the records of a topic are trained on when they come; remove the weight"
                : "only train datasets are mixed; remove the weight");
    }
  }
}

void CheckGroup(const JobSpec& job, std::vector<BrokenRule>* broken) {
  const GroupSpec& group = job.group;
  if (!HasGroup(job)) return;
  if (!job.training.keep_best.empty() || job.training.keep_every > 0) {
    broken->push_back({{"spec.training.keep"},
                       "the weights of a synchronous group are not kept by epoch: remove "
                       "spec.training.keep, and let the trainer write the weights that you want"});
  }
  const uint32_t batch = *group.global_batch;
  for (size_t i = 0; i < job.datasets.size(); ++i) {
    const DatasetSpec& dataset = job.datasets[i];
    if (dataset.mode != DatasetMode::kTrain) continue;
    const uint32_t minibatches = std::max(batch / dataset.minibatch_size, 1u);
    if (batch % dataset.minibatch_size != 0) {
      broken->push_back(
          {{"spec.group.globalBatch", fmt::format("spec.datasets[{}].minibatchSize", i)},
           fmt::format("{} is no multiple of the {} records of a minibatch of dataset '{}', so its "
                       "members cannot divide it; use {} or {}",
                       batch, dataset.minibatch_size, dataset.name,
                       minibatches * dataset.minibatch_size,
                       (minibatches + 1) * dataset.minibatch_size)});
    } else if (minibatches > kMinibatchesPerShardMax) {
      broken->push_back(
          {{"spec.group.globalBatch", fmt::format("spec.datasets[{}].minibatchSize", i)},
           fmt::format("{} are {} minibatches of dataset '{}'; at most {} are allowed", batch,
                       minibatches, dataset.name, kMinibatchesPerShardMax)});
    }
  }
  if (group.members_min > GroupMembersMax(job)) {
    broken->push_back({{"spec.group.minMembers", "spec.group.maxMembers"},
                       fmt::format("{} is more than the {} workers that the group may have",
                                   group.members_min, GroupMembersMax(job))});
  }
}

void CheckS3(const JobSpec& job, std::vector<BrokenRule>* broken) {
  const auto check = [&](const std::string& path, const absl::Status& status) {
    if (!status.ok()) broken->push_back({{path}, std::string(Message(status))});
  };
  if (IsS3Place(job.snapshot_directory)) {
    check("spec.snapshots.directory", PlaceWithOptions(job.snapshot_directory, {}).status());
  }
  if (!job.s3.endpoint.empty()) {
    check("spec.snapshots.s3.endpoint", CheckEndpoint(job.s3.endpoint));
  }
  check("spec.snapshots.s3.region", CheckRegion(job.s3.region));
}

void CheckTimes(const JobSpec& job, std::vector<BrokenRule>* broken) {
  const auto& leases = job.leases;
  const auto& servers = job.servers;
  if (leases.heartbeat_interval * 3 > leases.duration) {
    broken->push_back(
        {{"spec.leases.heartbeatInterval", "spec.leases.duration"},
         fmt::format("{} is more than a third of spec.leases.duration ({}): a worker "
                     "that loses one heartbeat could lose its shards",
                     FormatDuration(leases.heartbeat_interval), FormatDuration(leases.duration))});
  }
  if (leases.max_age < leases.duration) {
    broken->push_back(
        {{"spec.leases.maxAge", "spec.leases.duration"},
         fmt::format("{} is less than spec.leases.duration ({})", FormatDuration(leases.max_age),
                     FormatDuration(leases.duration))});
  }
  if (servers.heartbeat_interval * 3 > servers.timeout) {
    broken->push_back(
        {{"spec.servers.heartbeatInterval", "spec.servers.timeout"},
         fmt::format("{} is more than a third of spec.servers.timeout ({}): a server "
                     "that loses one heartbeat could count as lost",
                     FormatDuration(servers.heartbeat_interval), FormatDuration(servers.timeout))});
  }
  if (job.restarts.backoff_max < job.restarts.backoff_initial) {
    broken->push_back({{"spec.restarts.backoffMax", "spec.restarts.backoffInitial"},
                       fmt::format("{} is less than spec.restarts.backoffInitial ({})",
                                   FormatDuration(job.restarts.backoff_max),
                                   FormatDuration(job.restarts.backoff_initial))});
  }
}

/// One amount of a role, with the words that a message uses for it.
struct Amount {
  std::string path;
  std::string_view what;  // "the limit"
  const ResourceSpec& value;
};

/// Checks that `more` is not less than `less`.
void CheckOrder(const Amount& less, const Amount& more, std::vector<BrokenRule>* broken) {
  if (less.value.cpu && more.value.cpu && *less.value.cpu > *more.value.cpu) {
    broken->push_back({{more.path + ".cpu", less.path + ".cpu"},
                       fmt::format("{} of {} cores is less than {} of {}", more.what,
                                   *more.value.cpu, less.what, *less.value.cpu)});
  }
  if (less.value.memory_bytes && more.value.memory_bytes &&
      *less.value.memory_bytes > *more.value.memory_bytes) {
    broken->push_back({{more.path + ".memory", less.path + ".memory"},
                       fmt::format("{} of {} is less than {} of {}", more.what,
                                   FormatMemory(*more.value.memory_bytes), less.what,
                                   FormatMemory(*less.value.memory_bytes))});
  }
}

void CheckResources(const std::string& role, const ReplicaSpec& replica,
                    std::vector<BrokenRule>* broken) {
  const std::string in = fmt::format("spec.replicaSpecs.{}.resources.", role);
  const Amount requests{in + "requests", "the request", replica.requests};
  const Amount limits{in + "limits", "the limit", replica.limits};
  const Amount max{in + "max", "the maximum", replica.max};
  CheckOrder(requests, limits, broken);
  CheckOrder(limits, max, broken);
  // Without a limit, the checks above have not compared `max` with the request.
  if (!replica.limits.cpu || !replica.limits.memory_bytes) {
    const ResourceSpec bare{
        .cpu = replica.limits.cpu ? std::nullopt : replica.requests.cpu,
        .memory_bytes = replica.limits.memory_bytes ? std::nullopt : replica.requests.memory_bytes};
    CheckOrder({requests.path, requests.what, bare}, max, broken);
  }
}

void CheckWorkers(const ReplicaSpec& worker, std::vector<BrokenRule>* broken) {
  const std::string in = "spec.replicaSpecs.worker.";
  if (worker.replicas_min && *worker.replicas_min > worker.replicas) {
    broken->push_back({{in + "minReplicas", in + "replicas"},
                       fmt::format("{} is more than spec.replicaSpecs.worker.replicas ({})",
                                   *worker.replicas_min, worker.replicas)});
  }
  if (worker.replicas_max && *worker.replicas_max < worker.replicas) {
    broken->push_back({{in + "maxReplicas", in + "replicas"},
                       fmt::format("{} is less than spec.replicaSpecs.worker.replicas ({})",
                                   *worker.replicas_max, worker.replicas)});
  }
}

/// Checks that the budget covers the first limits of all processes. If a limit is missing, the
/// request counts.
void CheckBudget(const JobSpec& job, std::vector<BrokenRule>* broken) {
  double cpu = 0;
  double memory = 0;  // floating point, because the sum may be beyond 64 bits
  for (const ReplicaSpec* role : {&job.ps, &job.worker}) {
    const auto& memory_bytes = role->limits.memory_bytes ? role->limits : role->requests;
    cpu += role->replicas * (role->limits.cpu ? role->limits : role->requests).cpu.value_or(0);
    memory += role->replicas * static_cast<double>(memory_bytes.memory_bytes.value_or(0));
  }
  // Decimal fractions of cores do not add up exactly.
  if (job.budget.cpu && cpu > *job.budget.cpu + 1e-6) {
    broken->push_back({{"spec.budget.cpu"},
                       fmt::format("{:g} cores are less than the {:g} that all servers and workers "
                                   "need at first (their limits, or else their requests)",
                                   *job.budget.cpu, cpu)});
  }
  if (job.budget.memory_bytes && memory > static_cast<double>(*job.budget.memory_bytes)) {
    broken->push_back({{"spec.budget.memory"},
                       fmt::format("{} is less than the {} that all servers and workers need at "
                                   "first (their limits, or else their requests)",
                                   FormatMemory(*job.budget.memory_bytes),
                                   FormatMemory(static_cast<uint64_t>(memory)))});
  }
}

void CheckPolicies(const PolicyOptions& policies, std::vector<BrokenRule>* broken) {
  const HangOptions& hang = policies.hang;
  if (hang.first_silence_min < hang.silence_min) {
    broken->push_back(
        {{"spec.scaler.hang.firstTimeout", "spec.scaler.hang.timeout"},
         fmt::format("{} is less than spec.scaler.hang.timeout ({})",
                     FormatDuration(hang.first_silence_min), FormatDuration(hang.silence_min))});
  }
  const WorkerCountOptions& count = policies.worker_count;
  if (count.remove_max >= count.add_min) {
    broken->push_back(
        {{"spec.scaler.workerCount.removeMax", "spec.scaler.workerCount.addMin"},
         fmt::format("{:g} is not less than spec.scaler.workerCount.addMin ({:g}): the same worker "
                     "would be added and removed again and again",
                     count.remove_max, count.add_min)});
  }
}

void CheckKubernetes(const KubernetesSpec& kubernetes, std::vector<BrokenRule>* broken) {
  const std::string in = "spec.kubernetes.";
  const auto space = [](char c) { return c <= ' ' || c > '~'; };
  if (std::ranges::any_of(kubernetes.image, space)) {
    broken->push_back({{in + "image"}, "the name of an image has no spaces"});
  }
  const auto check = [&](const std::string& path, const std::string& name) {
    if (name.empty() || IsObjectName(name)) return;
    broken->push_back({{in + path},
                       fmt::format("'{}' is not the name of an object of Kubernetes (a-z, 0-9, - "
                                   "and .)",
                                   name)});
  };
  check("state.claim", kubernetes.state.claim);
  check("state.storageClass", kubernetes.state.storage_class);
  check("snapshots.claim", kubernetes.snapshots.claim);
  check("snapshots.storageClass", kubernetes.snapshots.storage_class);
}

/// Checks that other processes can connect to the addresses on which processes listen.
void CheckListening(const JobSpec& job, std::vector<BrokenRule>* broken) {
  const JobSpec::ServerListen& servers = job.server_listen;
  const auto parsed = ParseHostPort(job.master_address);
  if (parsed.ok() && IsWildcardHost(parsed->host) && job.master_advertise.empty()) {
    broken->push_back({{"spec.master.address", "spec.master.advertise"},
                       fmt::format("the master listens at every address ({}), so workers and "
                                   "servers need one by which they reach it: set "
                                   "spec.master.advertise",
                                   parsed->host)});
  }
  if (IsWildcardHost(job.master_advertise) || IsWildcardHost(servers.advertise)) {
    broken->push_back({{"spec.master.advertise"},
                       "no process can connect to a wildcard address; advertise a name or another "
                       "address"});
  }
  if (job.servers_joined > job.ps.replicas) {
    broken->push_back({{"spec.replicaSpecs.ps.joined", "spec.replicaSpecs.ps.replicas"},
                       fmt::format("{} servers cannot join a job that has {} servers",
                                   job.servers_joined, job.ps.replicas)});
  }
}

}  // namespace

std::vector<BrokenRule> CheckJobRules(const JobSpec& job) {
  std::vector<BrokenRule> broken;
  CheckDatasets(job, &broken);
  CheckEpochEnds(job, &broken);
  CheckWeights(job, &broken);
  CheckOutputs(job, &broken);
  CheckGroup(job, &broken);
  CheckTimes(job, &broken);
  CheckS3(job, &broken);
  CheckResources("ps", job.ps, &broken);
  CheckResources("worker", job.worker, &broken);
  CheckWorkers(job.worker, &broken);
  CheckBudget(job, &broken);
  CheckPolicies(job.scaler.policies, &broken);
  CheckListening(job, &broken);
  CheckKubernetes(job.kubernetes, &broken);
  if (job.security.tls == TlsUse::kAlways && job.security.insecure) {
    broken.push_back({{"spec.security.insecure", "spec.security.tls"},
                      "plain text contradicts spec.security.tls: always; remove one of them"});
  }
  if (job.ps.replicas == 0 && !HasGroup(job)) {
    broken.push_back({{"spec.replicaSpecs.ps.replicas"},
                      "only a job with a synchronous group (spec.group) needs no server"});
  }
  if (job.ps.replicas > job.partitions) {
    broken.push_back({{"spec.replicaSpecs.ps.replicas", "spec.partitions"},
                      fmt::format("{} servers cannot share {} partitions (spec.partitions)",
                                  job.ps.replicas, job.partitions)});
  }
  return broken;
}

}  // namespace muster::job_file
