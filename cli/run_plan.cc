#include "cli/run_plan.h"

#include <arpa/inet.h>
#include <glob.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "base/random.h"
#include "base/status.h"
#include "cli/state_directory.h"

namespace muster {
namespace {

constexpr uint32_t kPortBegin = 20'000;
constexpr uint32_t kPortEnd = 32'000;
constexpr size_t kSampleBytes = 64 << 10;

absl::Status CheckExecutable(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::PermissionDeniedError(fmt::format("{} is not a file", path));
  }
  if (::access(path.c_str(), X_OK) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("{} is not executable; mend it with: chmod +x {}", path, path));
  }
  return absl::OkStatus();
}

/// Nobody listens on the port, nor could anybody who asked for it exclusively.
absl::Status TryPort(uint32_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "cannot create a socket");
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  const int one = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(fd, 1) != 0) {
    return ErrnoStatus(errno, fmt::format("127.0.0.1:{}", port));
  }
  return absl::OkStatus();
}

/// First port that the kernel may give to an outgoing connection.
uint32_t EphemeralBegin() {
  uint32_t begin = 32'768;
  if (FILE* file = std::fopen("/proc/sys/net/ipv4/ip_local_port_range", "re")) {
    if (std::fscanf(file, "%u", &begin) != 1) begin = 32'768;
    std::fclose(file);
  }
  return begin;
}

uint64_t EstimateRecords(const std::string& path, uint64_t bytes, bool header) {
  FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  std::string sample(kSampleBytes, '\0');
  sample.resize(std::fread(sample.data(), 1, sample.size(), file));
  std::fclose(file);
  uint64_t lines = static_cast<uint64_t>(std::count(sample.begin(), sample.end(), '\n'));
  if (sample.size() == bytes) {  // the whole file
    if (!sample.empty() && sample.back() != '\n') ++lines;
  } else if (lines > 0) {
    lines = bytes * lines / sample.size();
  }
  return header && lines > 0 ? lines - 1 : lines;
}

nlohmann::json NodeToJson(const RunPlan& plan, const std::string& node, NodeRole role) {
  const NodeCommand command = CommandOf(plan, node, role);
  return {{"name", node}, {"role", ToString(role)}, {"command", command.command}};
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
          fmt::format("the program {} does not exist: looked for {} (relative paths begin at the "
                      "job file's folder); build it, or correct spec.replicaSpecs.worker.command",
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
      fmt::format("the program {} is in no folder of PATH ({}); write ./{} for one in the job "
                  "file's folder, or correct spec.replicaSpecs.worker.command",
                  name, where.path, name));
}

absl::StatusOr<std::string> ChooseMasterAddress(const std::string& wanted, uint64_t seed) {
  const size_t colon = wanted.rfind(':');
  const std::string port = colon == std::string::npos ? "0" : wanted.substr(colon + 1);
  if (port != "0") {
    const absl::Status status = TryPort(static_cast<uint32_t>(std::atoi(port.c_str())));
    if (status.ok()) return wanted;
    return absl::FailedPreconditionError(
        fmt::format("spec.master.address: {} is taken ({}); end the program that listens there "
                    "(`ss -ltnp` names "
                    "it), choose another port, or leave the field out to get a free one",
                    wanted, Message(status)));
  }
  const uint32_t end = std::clamp(EphemeralBegin(), kPortBegin + 1, kPortEnd);
  const uint32_t count = end - kPortBegin;
  Rng rng(seed);
  absl::Status last;
  for (int i = 0; i < 200; ++i) {
    const uint32_t candidate = kPortBegin + static_cast<uint32_t>(rng.Below(count));
    last = TryPort(candidate);
    if (last.ok()) return fmt::format("127.0.0.1:{}", candidate);
  }
  return absl::ResourceExhaustedError(fmt::format("found no free port of 127.0.0.1 in [{}, {}): {}",
                                                  kPortBegin, end, Message(last)));
}

absl::StatusOr<PlannedDataset> PlanDataset(const DatasetSpec& dataset,
                                           const std::string& base_directory) {
  PlannedDataset plan{.name = dataset.name, .mode = dataset.mode, .epochs = dataset.epochs};
  const uint64_t records_per_shard =
      std::max<uint64_t>(uint64_t{dataset.minibatch_size} * dataset.minibatches_per_shard, 1);
  for (const std::string& pattern : dataset.files) {
    const std::string path = (std::filesystem::path(base_directory) / pattern).string();
    glob_t found{};
    const int result = ::glob(path.c_str(), GLOB_MARK, nullptr, &found);
    absl::Cleanup free_glob = [&found] { ::globfree(&found); };
    if (result != 0) {
      return absl::NotFoundError(fmt::format(
          "dataset {}: no file matches {} (looked in {}); correct spec.datasets[].files",
          dataset.name, pattern, std::filesystem::path(path).parent_path().string()));
    }
    const size_t files_before = plan.files.size();
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      const std::string file = found.gl_pathv[i];
      if (file.back() == '/') continue;
      struct stat info;
      if (::stat(file.c_str(), &info) != 0) return ErrnoStatus(errno, file);
      plan.files.push_back(file);
      const uint64_t bytes = static_cast<uint64_t>(info.st_size);
      plan.bytes += bytes;
      const uint64_t records = EstimateRecords(file, bytes, dataset.header);
      plan.records_estimate += records;
      plan.shards_estimate += (records + records_per_shard - 1) / records_per_shard;
    }
    if (plan.files.size() == files_before) {
      return absl::InvalidArgumentError(fmt::format(
          "dataset {}: {} is a folder; write '{}/*' for its files", dataset.name, path, pattern));
    }
  }
  if (plan.bytes == 0) {
    return absl::InvalidArgumentError(
        fmt::format("dataset {}: there is no record in it, all of its {} files are empty (the "
                    "first: {}); put the data there, or correct spec.datasets[].files",
                    dataset.name, plan.files.size(), plan.files.front()));
  }
  return plan;
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
                         plan.master_address,
                         "--run-id",
                         plan.run_id};
      command.command.insert(command.command.end(), plan.master_flags.begin(),
                             plan.master_flags.end());
      break;
    case NodeRole::kServer:
      command.command = {plan.program,
                         "ps",
                         "--name",
                         node,
                         "--master",
                         plan.master_address,
                         "--socket-directory",
                         state.run(),
                         "--threads",
                         std::to_string(plan.job.servers.threads)};
      command.environment = plan.job.ps.env;
      break;
    case NodeRole::kWorker:
      command.command = plan.job.worker.command;
      command.command.front() = plan.trainer;
      command.environment = plan.job.worker.env;
      command.environment["MUSTER_MASTER"] = plan.master_address;
      command.environment["MUSTER_NODE"] = node;
      command.environment["MUSTER_SLOT_FILE"] = state.SlotOf(node);
      break;
  }
  return command;
}

std::string DescribePlan(const RunPlan& plan) {
  const StateDirectory state(plan.job.state_directory);
  std::string text = fmt::format("job {} ({})\n", plan.job.name, plan.job_file);
  text +=
      fmt::format("  state      {}\n  snapshots  {} (every {:g} s)\n  logs       {}\n",
                  state.path(), plan.job.snapshot_directory,
                  static_cast<double>(plan.job.snapshot_interval.count()) / 1000.0, state.logs());
  text += fmt::format("  master     {}\n  partitions {}, seed {}\n", plan.master_address,
                      plan.job.partitions, plan.job.seed);
  text += "datasets\n";
  for (const PlannedDataset& dataset : plan.datasets) {
    const std::string how =
        dataset.mode == DatasetMode::kTrain
            ? fmt::format("train, {} epoch{}", dataset.epochs, dataset.epochs == 1 ? "" : "s")
            : "evaluate, after every training epoch";
    text +=
        fmt::format("  {} ({}): {} file{}, {} bytes, about {} records in {} shards\n", dataset.name,
                    how, dataset.files.size(), dataset.files.size() == 1 ? "" : "s", dataset.bytes,
                    dataset.records_estimate, dataset.shards_estimate);
    for (size_t i = 0; i < dataset.files.size() && i < 10; ++i) {
      text += fmt::format("    {}\n", dataset.files[i]);
    }
    if (dataset.files.size() > 10) {
      text += fmt::format("    ... and {} more\n", dataset.files.size() - 10);
    }
  }
  text += "nodes\n";
  const auto add = [&](const std::string& node, NodeRole role) {
    const NodeCommand command = CommandOf(plan, node, role);
    text += fmt::format("  {:<10} {}\n", node, fmt::join(command.command, " "));
  };
  add("master", NodeRole::kMaster);
  for (uint32_t i = 0; i < plan.job.ps.replicas; ++i) {
    add(fmt::format("ps-{}", i), NodeRole::kServer);
  }
  for (uint32_t i = 0; i < plan.job.worker.replicas; ++i) {
    add(fmt::format("worker-{}", i), NodeRole::kWorker);
  }
  return text;
}

std::string PlanToJson(const RunPlan& plan) {
  nlohmann::json json = {{"job", plan.job.name},
                         {"state_directory", plan.job.state_directory},
                         {"snapshot_directory", plan.job.snapshot_directory},
                         {"master", plan.master_address},
                         {"partitions", plan.job.partitions},
                         {"datasets", nlohmann::json::array()},
                         {"nodes", nlohmann::json::array()}};
  for (const PlannedDataset& dataset : plan.datasets) {
    json["datasets"].push_back(
        {{"name", dataset.name},
         {"mode", dataset.mode == DatasetMode::kTrain ? "train" : "evaluate"},
         {"epochs", dataset.epochs},
         {"files", dataset.files},
         {"bytes", dataset.bytes},
         {"records_estimate", dataset.records_estimate},
         {"shards_estimate", dataset.shards_estimate}});
  }
  json["nodes"].push_back(NodeToJson(plan, "master", NodeRole::kMaster));
  for (uint32_t i = 0; i < plan.job.ps.replicas; ++i) {
    json["nodes"].push_back(NodeToJson(plan, fmt::format("ps-{}", i), NodeRole::kServer));
  }
  for (uint32_t i = 0; i < plan.job.worker.replicas; ++i) {
    json["nodes"].push_back(NodeToJson(plan, fmt::format("worker-{}", i), NodeRole::kWorker));
  }
  return json.dump(2) + "\n";
}

}  // namespace muster
