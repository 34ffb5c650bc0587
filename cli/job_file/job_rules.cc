#include "cli/job_file/job_rules.h"

#include <arpa/inet.h>

#include <set>

#include "base/status.h"
#include "cli/job_file/scalars.h"

namespace muster::job_file {
namespace {

bool IsLoopbackHost(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return false;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

void CheckDatasets(const JobSpec& job, std::vector<BrokenRule>* broken) {
  std::set<std::string> names;
  bool trains = false;
  for (size_t i = 0; i < job.datasets.size(); ++i) {
    const DatasetSpec& dataset = job.datasets[i];
    trains = trains || dataset.mode == DatasetMode::kTrain;
    const std::string path = fmt::format("spec.datasets[{}].name", i);
    if (!dataset.name.empty() && !names.insert(dataset.name).second) {
      broken->push_back(
          {{path}, fmt::format("the name '{}' is used by two datasets", dataset.name)});
    }
  }
  if (!trains && !job.datasets.empty()) {
    broken->push_back({{"spec.datasets"}, "no dataset has mode train; at least one must"});
  }
}

void CheckTimes(const JobSpec& job, std::vector<BrokenRule>* broken) {
  const auto& leases = job.leases;
  const auto& servers = job.servers;
  if (leases.heartbeat_interval * 3 > leases.duration) {
    broken->push_back(
        {{"spec.leases.heartbeatInterval", "spec.leases.duration"},
         fmt::format("{} is more than a third of spec.leases.duration ({}): one lost "
                     "heartbeat would cost the lease",
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
         fmt::format("{} is more than a third of spec.servers.timeout ({}): one lost "
                     "heartbeat would cost the server",
                     FormatDuration(servers.heartbeat_interval), FormatDuration(servers.timeout))});
  }
  if (job.restarts.backoff_max < job.restarts.backoff_initial) {
    broken->push_back({{"spec.restarts.backoffMax", "spec.restarts.backoffInitial"},
                       fmt::format("{} is less than spec.restarts.backoffInitial ({})",
                                   FormatDuration(job.restarts.backoff_max),
                                   FormatDuration(job.restarts.backoff_initial))});
  }
}

void CheckResources(const std::string& role, const ReplicaSpec& replica,
                    std::vector<BrokenRule>* broken) {
  const std::string in = fmt::format("spec.replicaSpecs.{}.resources.", role);
  if (replica.requests.cpu && replica.limits.cpu && *replica.requests.cpu > *replica.limits.cpu) {
    broken->push_back({{in + "limits.cpu", in + "requests.cpu"},
                       fmt::format("the limit of {} cores is less than the {} requested",
                                   *replica.limits.cpu, *replica.requests.cpu)});
  }
  if (replica.requests.memory_bytes && replica.limits.memory_bytes &&
      *replica.requests.memory_bytes > *replica.limits.memory_bytes) {
    broken->push_back({{in + "limits.memory", in + "requests.memory"},
                       fmt::format("the limit of {} is less than the {} requested",
                                   FormatMemory(*replica.limits.memory_bytes),
                                   FormatMemory(*replica.requests.memory_bytes))});
  }
}

}  // namespace

std::vector<BrokenRule> CheckJobRules(const JobSpec& job) {
  std::vector<BrokenRule> broken;
  CheckDatasets(job, &broken);
  CheckTimes(job, &broken);
  CheckResources("ps", job.ps, &broken);
  CheckResources("worker", job.worker, &broken);
  if (job.ps.replicas > job.partitions) {
    broken.push_back({{"spec.replicaSpecs.ps.replicas", "spec.partitions"},
                      fmt::format("{} servers cannot share {} partitions (spec.partitions)",
                                  job.ps.replicas, job.partitions)});
  }
  return broken;
}

absl::Status CheckLoopbackAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  const std::string_view port_text =
      colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
  const auto port = ParseWhole(port_text);
  const std::string host(address.substr(0, colon == std::string_view::npos ? 0 : colon));
  if (!port.ok() || *port > 65'535 || host.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not host:port like 127.0.0.1:0", address));
  }
  if (!IsLoopbackHost(host)) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is not a loopback address; any other is refused until TLS exists: use 127.0.0.1:{}",
        address, *port));
  }
  return absl::OkStatus();
}

}  // namespace muster::job_file
