#include "cli/run/run_plan.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "base/address.h"
#include "base/random.h"
#include "base/status.h"
#include "cli/run/scaler_settings.h"
#include "cli/state/state_directory.h"
#include "job/security.h"
#include "proto/fields/json.h"
#include "security/credentials.h"
#include "store/names/place.h"

namespace muster {
namespace {

constexpr uint32_t kPortBegin = 20'000;
constexpr uint32_t kPortEnd = 32'000;
constexpr size_t kPartsShown = 10;  // of a dataset

absl::Status CheckExecutable(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::PermissionDeniedError(fmt::format("{} is not a file", path));
  }
  if (::access(path.c_str(), X_OK) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("{} is not executable; fix it with: chmod +x {}", path, path));
  }
  return absl::OkStatus();
}

/// The numeric address on which the master listens.
struct BindHost {
  std::string text;  // "127.0.0.1", "::1"
  sockaddr_storage address{};
  socklen_t size = 0;
};

absl::StatusOr<BindHost> ParseHost(const std::string& host) {
  MUSTER_RETURN_IF_ERROR(CheckHost(host));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> numbers,
                          ResolveHost(host == "localhost" ? "127.0.0.1" : host));
  BindHost parsed;
  parsed.text = numbers.front();
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&parsed.address);
  if (::inet_pton(AF_INET6, parsed.text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    parsed.size = sizeof(*v6);
    return parsed;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&parsed.address);
  v4->sin_family = AF_INET;
  parsed.size = sizeof(*v4);
  if (::inet_pton(AF_INET, parsed.text.c_str(), &v4->sin_addr) == 1) return parsed;
  return absl::InvalidArgumentError(fmt::format("'{}' is no address of this machine", host));
}

/// OK if the port is free, also for a program that wants it exclusively. InvalidArgument if the
/// address does not belong to this machine.
absl::Status TryPort(BindHost host, uint32_t port) {
  const int fd = ::socket(host.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "cannot create a socket");
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  const int one = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  // The port is at the same offset in both kinds of addresses.
  reinterpret_cast<sockaddr_in*>(&host.address)->sin_port = htons(static_cast<uint16_t>(port));
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&host.address), host.size) != 0 ||
      ::listen(fd, 1) != 0) {
    if (errno == EADDRNOTAVAIL) {
      return absl::InvalidArgumentError(
          fmt::format("this machine does not have the address {}", host.text));
    }
    return ErrnoStatus(errno, JoinHostPort(host.text, static_cast<uint16_t>(port)));
  }
  return absl::OkStatus();
}

/// The first port that the kernel may give to an outgoing connection.
uint32_t EphemeralBegin() {
  uint32_t begin = 32'768;
  if (FILE* file = std::fopen("/proc/sys/net/ipv4/ip_local_port_range", "re")) {
    if (std::fscanf(file, "%u", &begin) != 1) begin = 32'768;
    std::fclose(file);
  }
  return begin;
}

nlohmann::json NodeToJson(const RunPlan& plan, const std::string& node, NodeRole role) {
  const NodeCommand command = CommandOf(plan, node, role);
  nlohmann::json json = {{"name", node}, {"role", ToString(role)}, {"command", command.command}};
  if (role == NodeRole::kServer || role == NodeRole::kWorker) {
    const scaler::InitialLimits all = InitialLimitsOf(plan.job);
    const Resources& limits = role == NodeRole::kServer ? all.server : all.worker;
    json["limits"] = {{"cpus", limits.cpus}, {"memory_bytes", limits.memory_bytes}};
  }
  return json;
}

/// Describes the first limits of nodes, and the limits that policies may set.
std::string DescribeLimits(const JobSpec& job) {
  const scaler::InitialLimits limits = InitialLimitsOf(job);
  const scaler::JobShape shape = JobShapeOf(job, {});
  std::string text = "limits\n";
  const auto add = [&](const char* name, NodeRole role, const Resources& initial,
                       const std::string& more) {
    const Resources& max = shape.roles.at(role).max;
    text += fmt::format("  {:<10} {} each{}{}\n", name, ToString(initial),
                        max == Resources{} ? "" : ", up to " + ToString(max), more);
  };
  add("ps", NodeRole::kServer, limits.server, "");
  add("worker", NodeRole::kWorker, limits.worker,
      shape.workers_min == shape.workers_max
          ? ""
          : fmt::format("; {} to {} workers", shape.workers_min, shape.workers_max));
  if (shape.budget != Resources{}) {
    text += fmt::format("  {:<10} {}\n", "together", ToString(shape.budget));
  }
  return text;
}

/// Says where the certificates of a job with TLS are, or will be.
std::string CertificatesOf(const JobSpec& job) {
  return job.security.certificates.empty() ? StateDirectory(job.state_directory).certificates()
                                           : job.security.certificates;
}

void MakeTrainerCommand(const RunPlan& plan, const std::string& node, NodeCommand* command) {
  const StateDirectory state(plan.job.state_directory);
  command->command = plan.job.worker.command;
  command->command.front() = plan.trainer;
  command->environment = plan.job.worker.env;
  command->environment["MUSTER_MASTER"] = plan.master_address;
  command->environment["MUSTER_NODE"] = node;
  command->environment["MUSTER_SLOT_FILE"] = state.SlotOf(node);
  if (!plan.job_id.empty()) command->environment["MUSTER_JOB_ID"] = plan.job_id;
  NameCredentials(plan.certificates, &command->environment);
  command->slot_file = state.SlotOf(node);
}

void AddIdentity(const RunPlan& plan, NodeCommand* command) {
  std::vector<std::string>& words = command->command;
  if (!plan.job_id.empty()) words.insert(words.end(), {"--job-id", plan.job_id});
  if (!plan.certificates.empty()) words.insert(words.end(), {"--tls", plan.certificates});
}

void AddCluster(const RunPlan& plan, NodeCommand* command) {
  if (plan.cluster_namespace.empty()) return;
  command->command.insert(command->command.end(), {"--cluster-namespace", plan.cluster_namespace});
}

/// Adds the options that say where a server listens.
void AddListening(const JobSpec& job, NodeCommand* command) {
  const auto add = [command](const char* flag, const std::string& value) {
    if (!value.empty()) command->command.insert(command->command.end(), {flag, value});
  };
  add("--address", job.server_listen.address);
  add("--advertise", job.server_listen.advertise);
  if (job.server_listen.ports != JobSpec().server_listen.ports) {
    add("--ports", job.server_listen.ports);
  }
  if (job.security.insecure) command->command.emplace_back("--insecure");
}

/// Chooses an address. `field` of the job file says what is wanted; errors name it.
absl::StatusOr<std::string> ChooseAddress(std::string_view field, const std::string& wanted,
                                          uint64_t seed, const RetryPort& retry) {
  const size_t colon = std::min(wanted.rfind(':'), wanted.size());
  MUSTER_ASSIGN_OR_RETURN(const BindHost host, ParseHost(wanted.substr(0, colon)));
  const std::string port = colon == wanted.size() ? "0" : wanted.substr(colon + 1);
  if (port != "0") {
    absl::Status status;
    do {
      status = TryPort(host, static_cast<uint32_t>(std::atoi(port.c_str())));
    } while (!status.ok() && !absl::IsInvalidArgument(status) && retry != nullptr && retry());
    if (status.ok()) return JoinHostPort(host.text, static_cast<uint16_t>(std::atoi(port.c_str())));
    if (absl::IsInvalidArgument(status)) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: {} is not possible: {}. `ip address` shows the addresses of this machine", field,
          wanted, Message(status)));
    }
    return absl::FailedPreconditionError(
        fmt::format("{}: {} is taken ({}). End the program that listens there (`ss -ltnp` shows "
                    "it), choose another port, or leave the field out to get a free one",
                    field, wanted, Message(status)));
  }
  const uint32_t end = std::clamp(EphemeralBegin(), kPortBegin + 1, kPortEnd);
  const uint32_t count = end - kPortBegin;
  Rng rng(seed);
  absl::Status last;
  for (int i = 0; i < 200; ++i) {
    const uint32_t candidate = kPortBegin + static_cast<uint32_t>(rng.Below(count));
    last = TryPort(host, candidate);
    if (last.ok()) return JoinHostPort(host.text, static_cast<uint16_t>(candidate));
  }
  return absl::ResourceExhaustedError(fmt::format("there is no free port of {} in [{}, {}): {}",
                                                  host.text, kPortBegin, end, Message(last)));
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name, const SearchPath& where) {
  if (name.find('/') != std::string::npos) {
    const std::string path =
        (std::filesystem::path(where.base_directory) / name).lexically_normal().string();
    const absl::Status status = CheckExecutable(path);
    if (status.ok()) return path;
    if (absl::IsNotFound(status)) {
      return absl::NotFoundError(
          fmt::format("the program {} does not exist: there is no {} (relative paths begin at the "
                      "job file's folder). Build it, or correct spec.replicaSpecs.worker.command",
                      name, path));
    }
    return Annotate(status, fmt::format("the program {} cannot be run", name));
  }
  absl::Status refused;
  for (size_t begin = 0; begin <= where.path.size();) {
    const size_t end = std::min(where.path.find(':', begin), where.path.size());
    const std::string folder = where.path.substr(begin, end - begin);
    begin = end + 1;
    if (folder.empty()) continue;
    const std::string path = folder + "/" + name;
    const absl::Status status = CheckExecutable(path);
    if (status.ok()) return path;
    if (!absl::IsNotFound(status)) refused = status;
  }
  if (!refused.ok()) return Annotate(refused, fmt::format("the program {} cannot be run", name));
  return absl::NotFoundError(
      fmt::format("the program {} is not in PATH ({}). If it is in the job file's folder, write "
                  "./{}; otherwise correct spec.replicaSpecs.worker.command",
                  name, where.path, name));
}

absl::StatusOr<std::string> ChooseMasterAddress(const std::string& wanted, uint64_t seed,
                                                const RetryPort& retry) {
  return ChooseAddress("spec.master.address", wanted, seed, retry);
}

std::string AddressForOthers(const std::string& listen, const JobSpec& job) {
  const auto place = ParseHostPort(listen);
  if (job.master_advertise.empty() || !place.ok()) return listen;
  return JoinHostPort(job.master_advertise, place->port);
}

absl::StatusOr<uint16_t> ChooseRestPort(uint32_t wanted, uint64_t seed, const std::string& taken,
                                        const std::string& host, const RetryPort& retry) {
  std::string address = taken;
  while (address == taken) {
    MUSTER_ASSIGN_OR_RETURN(
        address, ChooseAddress("spec.scaler.port",
                               JoinHostPort(host, static_cast<uint16_t>(wanted)), seed++, retry));
    if (address == taken && wanted != 0) {
      return absl::InvalidArgumentError(fmt::format(
          "spec.scaler.port: spec.master.address already has port {}; choose another", wanted));
    }
  }
  return static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
}

Endpoint EndpointOf(const RunPlan& plan) {
  return {.master = plan.master_address,
          .pid = ::getpid(),
          .run_id = plan.run_id,
          .job = {plan.job_id, plan.job.name},
          .certificates = plan.certificates};
}

void NameCredentials(const std::string& certificates,
                     std::map<std::string, std::string>* environment) {
  if (certificates.empty()) return;
  const CredentialFiles files = CredentialFilesOf(certificates, Role::kWorker);
  (*environment)["MUSTER_CA_FILE"] = files.ca;
  (*environment)["MUSTER_CERTIFICATE_FILE"] = files.certificate;
  (*environment)["MUSTER_KEY_FILE"] = files.key;
}

NodeCommand CommandOf(const RunPlan& plan, const std::string& node, NodeRole role) {
  const StateDirectory state(plan.job.state_directory);
  NodeCommand command{
      .name = node, .command = {}, .environment = {}, .working_directory = plan.base_directory};
  switch (role) {
    case NodeRole::kMaster:
      command.command = {plan.program,
                         "master",
                         "--job",
                         state.job_copy(),
                         "--base-directory",
                         plan.base_directory,
                         "--listen",
                         plan.master_listen.empty() ? plan.master_address : plan.master_listen,
                         "--run-id",
                         plan.run_id};
      AddIdentity(plan, &command);
      AddCluster(plan, &command);
      command.command.insert(command.command.end(), plan.master_flags.begin(),
                             plan.master_flags.end());
      break;
    case NodeRole::kServer: {
      const auto drain_timeout = std::chrono::ceil<std::chrono::seconds>(plan.job.drain_timeout);
      command.command = {plan.program,
                         "ps",
                         "--name",
                         node,
                         "--master",
                         plan.master_address,
                         "--socket-directory",
                         state.run(),
                         "--threads",
                         std::to_string(plan.job.servers.threads),
                         "--drain-timeout",
                         std::to_string(drain_timeout.count())};
      AddIdentity(plan, &command);
      AddListening(plan.job, &command);
      command.environment = plan.job.ps.env;
      break;
    }
    case NodeRole::kWorker:
      MakeTrainerCommand(plan, node, &command);
      break;
    case NodeRole::kScaler:
      command.command = {plan.scaler_program,
                         "scaler",
                         "--job",
                         state.job_copy(),
                         "--base-directory",
                         plan.base_directory,
                         "--master",
                         plan.master_address,
                         "--run-id",
                         plan.run_id,
                         "--trainer",
                         plan.trainer,
                         "--node-program",
                         plan.program,
                         "--rest-port",
                         std::to_string(plan.rest_port)};
      AddIdentity(plan, &command);
      AddCluster(plan, &command);
      command.keep_descendants = true;
      break;
  }
  return command;
}

std::map<std::string, std::string> JoinCommands(const RunPlan& plan) {
  std::map<std::string, std::string> commands;
  const JobSpec& job = plan.job;
  for (uint32_t i = job.ps.replicas - job.servers_joined; i < job.ps.replicas; ++i) {
    const std::string name = fmt::format("ps-{}", i);
    commands[name] =
        fmt::format("muster join {} --role ps --name {} --token-file join-ps {} --state-dir {}",
                    plan.master_address, name, UsesTls(job) ? "--tls tls" : "--insecure", name);
  }
  return commands;
}

std::string DescribePlan(const RunPlan& plan) {
  const StateDirectory state(plan.job.state_directory);
  std::string text = fmt::format("job {} ({})\n", plan.job.name, plan.job_file);
  text +=
      fmt::format("  state      {}\n  snapshots  {} (every {:g} s)\n  logs       {}\n",
                  state.path(), ShownPlace(plan.job.snapshot_directory),
                  static_cast<double>(plan.job.snapshot_interval.count()) / 1000.0, state.logs());
  text += fmt::format("  master     {}\n  partitions {}, seed {}\n", plan.master_address,
                      plan.job.partitions, plan.job.seed);
  if (UsesTls(plan.job)) {
    text += fmt::format("  security   TLS 1.3, certificates in {}\n", CertificatesOf(plan.job));
  }
  text += "datasets\n";
  for (const SourcePreview& dataset : plan.datasets) {
    text += fmt::format("  {} ({}): {}\n", dataset.name, dataset.how, dataset.what);
    for (size_t i = 0; i < dataset.parts.size() && i < kPartsShown; ++i) {
      text += fmt::format("    {}\n", dataset.parts[i]);
    }
    if (dataset.parts.size() > kPartsShown) {
      text += fmt::format("    ... and {} more\n", dataset.parts.size() - kPartsShown);
    }
  }
  text += DescribeLimits(plan.job);
  text += "nodes\n";
  const auto add = [&](const std::string& node, NodeRole role) {
    const NodeCommand command = CommandOf(plan, node, role);
    text += fmt::format("  {:<10} {}\n", node, fmt::join(command.command, " "));
  };
  add("master", NodeRole::kMaster);
  add("scaler", NodeRole::kScaler);
  for (uint32_t i = 0; i < plan.job.ps.replicas - plan.job.servers_joined; ++i) {
    add(fmt::format("ps-{}", i), NodeRole::kServer);
  }
  for (const auto& [name, command] : JoinCommands(plan)) {
    text += fmt::format("  {:<10} joins from another machine: {}\n", name, command);
  }
  for (uint32_t i = 0; i < plan.job.worker.replicas; ++i) {
    add(fmt::format("worker-{}", i), NodeRole::kWorker);
  }
  return text;
}

std::string PlanToJson(const RunPlan& plan) {
  nlohmann::json json = {{"job", plan.job.name},
                         {"state_directory", plan.job.state_directory},
                         {"snapshot_directory", ShownPlace(plan.job.snapshot_directory)},
                         {"master", plan.master_address},
                         {"partitions", plan.job.partitions},
                         {"tls", UsesTls(plan.job)},
                         {"datasets", nlohmann::json::array()},
                         {"nodes", nlohmann::json::array()}};
  for (const SourcePreview& dataset : plan.datasets) {
    nlohmann::json facts = {{"name", dataset.name}};
    for (const auto& [name, fact] : dataset.facts) {
      std::visit([&](const auto& value) { facts[name] = value; }, fact);
    }
    json["datasets"].push_back(std::move(facts));
  }
  json["nodes"].push_back(NodeToJson(plan, "master", NodeRole::kMaster));
  json["nodes"].push_back(NodeToJson(plan, "scaler", NodeRole::kScaler));
  for (uint32_t i = 0; i < plan.job.ps.replicas - plan.job.servers_joined; ++i) {
    json["nodes"].push_back(NodeToJson(plan, fmt::format("ps-{}", i), NodeRole::kServer));
  }
  for (uint32_t i = 0; i < plan.job.worker.replicas; ++i) {
    json["nodes"].push_back(NodeToJson(plan, fmt::format("worker-{}", i), NodeRole::kWorker));
  }
  return JsonText(json, 2) + "\n";
}

}  // namespace muster
