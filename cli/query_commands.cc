#include "cli/query_commands.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/export_command.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "cli/stored_job.h"
#include "cli/text_output.h"
#include "scaler/admin/admin_client.h"
#include "scaler/launcher/log_file.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kDeadline{5'000};
constexpr std::chrono::milliseconds kFollowInterval{300};
constexpr uint64_t kLogBytesMax = 64 << 20;

absl::StatusOr<std::unique_ptr<AdminClient>> Connect(const QueryOptions& options) {
  if (!options.master.empty()) {
    return MakeAdminClient(options.master, {}, kDeadline, WhenAway::kFail);
  }
  MUSTER_ASSIGN_OR_RETURN(const StateDirectory state, FindStateDirectory(options.target));
  MUSTER_ASSIGN_OR_RETURN(const Endpoint endpoint, state.ReadEndpoint());
  return MakeAdminClient(endpoint.master, endpoint.job, kDeadline, WhenAway::kFail);
}

/// Who answers a question: the job's master, or its state directory when no job runs there.
struct Source {
  std::unique_ptr<AdminClient> client;
  bool live = true;
};

absl::StatusOr<Source> OpenStored(const QueryOptions& options, const absl::Status& away) {
  absl::StatusOr<std::unique_ptr<AdminClient>> stored = OpenStoredJob(options.target);
  if (absl::IsNotFound(stored.status())) return away;
  if (!stored.ok()) return Annotate(stored.status(), Message(away));
  return Source{*std::move(stored), false};
}

/// Says on stderr when it is the state directory that answers.
absl::StatusOr<Source> FindSource(const QueryOptions& options) {
  absl::StatusOr<std::unique_ptr<AdminClient>> client = Connect(options);
  if (client.ok()) return Source{*std::move(client), true};
  if (!absl::IsNotFound(client.status())) return client.status();
  absl::StatusOr<Source> source = OpenStored(options, client.status());
  if (source.ok()) PrintNote("the job is not running; this is what its state directory holds");
  return source;
}

void PrintJson(const nlohmann::json& json) {
  PrintData(json.dump(2) + "\n");
}

absl::StatusOr<v1::JobStatus> AskStatus(const QueryOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const Source source, FindSource(options));
  return source.client->GetStatus();
}

/// Why shards cannot be tried again here and now, and what does it.
absl::Status CannotRetry(const QueryOptions& options, const absl::Status& away) {
  if (!absl::IsNotFound(away)) return away;
  const bool by_directory = !options.target.state_directory.empty();
  return absl::NotFoundError(fmt::format(
      "no job runs{}, so there is none that could try shards again: `muster run {} --retry-failed` "
      "goes on with the job and tries all its FAILED shards again",
      by_directory ? fmt::format(" with the state directory {}", options.target.state_directory)
                   : "",
      by_directory ? "JOB" : JobFileOf(options.target)));
}

int RetryCommand(const ShardsOptions& options) {
  v1::RetryShardsRequest request;
  for (const std::string& text : options.retry_ids) {
    absl::StatusOr<v1::ShardId> id = ParseShardId(text);
    if (!id.ok()) return PrintError(id.status());
    *request.add_shards() = *id;
  }
  absl::StatusOr<std::unique_ptr<AdminClient>> client = Connect(options.query);
  if (!client.ok()) return PrintError(CannotRetry(options.query, client.status()));
  absl::StatusOr<v1::RetryShardsResponse> response = (*client)->RetryShards(request);
  if (!response.ok()) return PrintError(response.status());
  if (options.query.output == OutputFormat::kJson) {
    PrintJson({{"retried", response->retried()}});
  } else {
    PrintData(CountText(response->retried(), "shard") + " will be tried again\n");
  }
  return kExitSucceeded;
}

std::string JoinNames(const StateDirectory& state) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(state.logs(), error)) {
    if (entry.path().extension() == ".log") names.insert(entry.path().stem().string());
  }
  return names.empty() ? "none yet" : fmt::format("{}", fmt::join(names, ", "));
}

/// What was appended to a log since the last call; notices when the log was rotated.
class LogFollower {
 public:
  explicit LogFollower(std::string path) : path_(std::move(path)) { Look(&inode_, &offset_); }

  std::string Next() {
    uint64_t inode = 0;
    uint64_t size = 0;
    if (!Look(&inode, &size)) return "";
    std::string text;
    if (inode != inode_) {
      text = ReadFrom(path_ + ".1", offset_);  // what was written before the rotation
      inode_ = inode;
      offset_ = 0;
    }
    std::string fresh = ReadFrom(path_, offset_);
    offset_ += fresh.size();
    return text + fresh;
  }

 private:
  bool Look(uint64_t* inode, uint64_t* size) const {
    struct stat info;
    if (::stat(path_.c_str(), &info) != 0) return false;
    *inode = info.st_ino;
    *size = static_cast<uint64_t>(info.st_size);
    return true;
  }
  static std::string ReadFrom(const std::string& path, uint64_t offset) {
    absl::StatusOr<std::string> text = ReadFile(path, kLogBytesMax);
    return text.ok() && text->size() > offset ? text->substr(offset) : "";
  }

  std::string path_;
  uint64_t inode_ = 0;
  uint64_t offset_ = 0;
};

/// A log as it is, or as one JSON object a line; a line that is not yet whole waits for its rest.
class LogPrinter {
 public:
  explicit LogPrinter(const LogsOptions& options) : options_(options) {}

  void Print(const std::string& text) {
    if (options_.query.output == OutputFormat::kText) return PrintData(text);
    rest_ += text;
    size_t begin = 0;
    for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      PrintLine(rest_.substr(begin, end - begin));
    }
    rest_.erase(0, begin);
  }
  void Finish() {
    if (!rest_.empty()) PrintLine(std::exchange(rest_, ""));
  }

 private:
  void PrintLine(const std::string& line) const {
    PrintData(nlohmann::json{{"node", options_.node}, {"line", ValidUtf8(line)}}.dump() + "\n");
  }

  const LogsOptions& options_;
  std::string rest_;
};

absl::StatusOr<v1::GetManifestResponse> FindManifest(const QueryOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const Source source, FindSource(options));
  return source.client->GetManifest();
}

int DrainNodeOf(const DrainOptions& options, AdminClient* client) {
  v1::DrainNodeRequest request;
  request.set_node(options.node);
  request.set_timeout_ms(uint64_t{options.timeout_s} * 1'000);
  while (true) {
    // Repeated, because a master that was started again knows nothing of it.
    const absl::StatusOr<v1::DrainNodeResponse> response = client->DrainNode(request);
    const bool again = options.wait && (response.ok() ? response->drain() != "drained"
                                                      : IsUnreachable(response.status()));
    if (again) {
      SleepFor(kFollowInterval);
      continue;
    }
    if (!response.ok()) return PrintError(response.status());
    if (options.query.output == OutputFormat::kJson) {
      PrintJson({{"node", options.node}, {"drain", response->drain()}, {"left", response->left()}});
    } else {
      PrintData(
          fmt::format("{}: {}{}\n", options.node, response->drain(),
                      response->left() == 0 ? "" : fmt::format(", {} left", response->left())));
    }
    return kExitSucceeded;
  }
}

int ResumeNodeOf(const DrainOptions& options, AdminClient* client) {
  v1::ResumeNodeRequest request;
  request.set_node(options.node);
  const absl::Status status = client->ResumeNode(request);
  if (!status.ok()) return PrintError(status);
  if (options.query.output == OutputFormat::kJson) {
    PrintJson({{"node", options.node}, {"drain", ""}, {"left", 0}});
  } else {
    PrintData(fmt::format("{}: its drain is taken back\n", options.node));
  }
  return kExitSucceeded;
}

}  // namespace

absl::StatusOr<v1::ShardId> ParseShardId(const std::string& text) {
  uint64_t parts[3] = {};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (int i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, parts[i]);
    const bool last = i == 2;
    if (error != std::errc() || (last ? next != end : next == end || *next != '/') ||
        (!last && parts[i] > UINT32_MAX)) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}' is no shard id; write dataset/epoch/index by number, as `muster shards` prints it: "
          "0/1/17",
          text));
    }
    at = last ? next : next + 1;
  }
  v1::ShardId id;
  id.set_dataset(static_cast<uint32_t>(parts[0]));
  id.set_epoch(static_cast<uint32_t>(parts[1]));
  id.set_index(parts[2]);
  return id;
}

int StatusCommand(const QueryOptions& options) {
  absl::StatusOr<v1::JobStatus> status = AskStatus(options);
  if (!status.ok()) return PrintError(status.status());
  if (options.output == OutputFormat::kJson) {
    PrintJson(StatusToJson(*status));
  } else {
    PrintData(StatusText(*status) + NodesText(*status));
  }
  return kExitSucceeded;
}

int NodesCommand(const QueryOptions& options) {
  absl::StatusOr<v1::JobStatus> status = AskStatus(options);
  if (!status.ok()) return PrintError(status.status());
  if (options.output == OutputFormat::kJson) {
    PrintJson({{"nodes", StatusToJson(*status)["nodes"]}});
  } else {
    PrintData(NodesText(*status));
  }
  return kExitSucceeded;
}

int ShardsCommand(const ShardsOptions& options) {
  if (options.retry) return RetryCommand(options);
  absl::StatusOr<Source> source = FindSource(options.query);
  if (!source.ok()) return PrintError(source.status());
  v1::ListShardsRequest request;
  request.set_state(options.state);
  request.set_limit(options.limit);
  request.set_offset(options.offset);
  absl::StatusOr<v1::ListShardsResponse> response = source->client->ListShards(request);
  if (!response.ok()) return PrintError(response.status());
  if (options.query.output == OutputFormat::kJson) {
    nlohmann::json shards = nlohmann::json::array();
    for (const v1::ShardStatus& shard : response->shards()) shards.push_back(ShardToJson(shard));
    PrintJson({{"total", response->total()}, {"shards", std::move(shards)}});
  } else {
    PrintData(ShardsText(*response));
  }
  return kExitSucceeded;
}

int EventsCommand(const EventsOptions& options) {
  absl::StatusOr<Source> source = FindSource(options.query);
  if (!source.ok()) return PrintError(source.status());
  v1::ListEventsRequest request;
  if (options.last > 0) {
    absl::StatusOr<v1::JobStatus> status = source->client->GetStatus();
    if (!status.ok()) return PrintError(status.status());
    request.set_after(status->events_newest() -
                      std::min<uint64_t>(options.last, status->events_newest()));
  }
  while (true) {
    absl::StatusOr<v1::ListEventsResponse> response = source->client->ListEvents(request);
    // A follower outlives restarts of the master, and ends with the run.
    const bool waiting = options.follow && !response.ok() && IsUnreachable(response.status());
    if (!response.ok() && !waiting) return PrintError(response.status());
    if (response.ok()) {
      for (const v1::Event& event : response->events()) {
        request.set_after(event.sequence());
        PrintData(options.query.output == OutputFormat::kJson ? EventToJson(event).dump() + "\n"
                                                              : EventText(event));
      }
      if (response->events_size() > 0) continue;
    }
    if (!options.follow || !source->live) return kExitSucceeded;
    if (waiting) {
      const absl::Status away = Connect(options.query).status();
      if (!away.ok()) {
        // The run is over: what was last said is in its state directory.
        source = OpenStored(options.query, away);
        if (!source.ok()) return kExitSucceeded;
        continue;
      }
    }
    SleepFor(kFollowInterval);
  }
}

int LogsCommand(const LogsOptions& options) {
  absl::StatusOr<StateDirectory> state = FindStateDirectory(options.query.target);
  if (!state.ok()) return PrintError(state.status());
  if (options.node.find('/') != std::string::npos) {
    return PrintError(
        fmt::format("'{}' is no node; nodes with a log: {}", options.node, JoinNames(*state)),
        kExitUsage);
  }
  const std::string path = state->LogOf(options.node);
  LogFollower follower(path);
  absl::StatusOr<std::string> text = ReadLastLines(path, options.lines, kLogBytesMax);
  if (!text.ok()) {
    return PrintError(fmt::format("there is no log of '{}' ({}); nodes with a log: {}",
                                  options.node, path, JoinNames(*state)),
                      kExitUsage);
  }
  LogPrinter printer(options);
  printer.Print(*text);
  while (options.follow) {
    const bool running = state->ReadEndpoint().ok();
    printer.Print(follower.Next());
    if (!running) break;
    SleepFor(kFollowInterval);
  }
  printer.Finish();
  return kExitSucceeded;
}

int PartitionsCommand(const PartitionsOptions& options) {
  absl::StatusOr<Source> source = FindSource(options.query);
  if (!source.ok()) return PrintError(source.status());
  v1::ListPartitionsRequest request;
  request.set_limit(options.limit);
  request.set_offset(options.offset);
  absl::StatusOr<v1::ListPartitionsResponse> response = source->client->ListPartitions(request);
  if (!response.ok()) return PrintError(response.status());
  if (options.query.output == OutputFormat::kJson) {
    nlohmann::json partitions = nlohmann::json::array();
    for (const v1::PartitionStatus& partition : response->partitions()) {
      partitions.push_back(PartitionToJson(partition));
    }
    PrintJson({{"total", response->total()}, {"partitions", std::move(partitions)}});
  } else {
    PrintData(PartitionsText(*response));
  }
  return kExitSucceeded;
}

int DrainCommand(const DrainOptions& options) {
  if (options.node.empty() && (options.undo || options.wait || options.timeout_s > 0)) {
    return PrintError("--undo, --wait and --timeout are for --node NODE", kExitUsage);
  }
  absl::StatusOr<std::unique_ptr<AdminClient>> client = Connect(options.query);
  if (!client.ok()) return PrintError(client.status());
  if (options.undo) return ResumeNodeOf(options, client->get());
  if (!options.node.empty()) return DrainNodeOf(options, client->get());
  const absl::Status status = (*client)->Drain();
  if (!status.ok()) return PrintError(status);
  if (options.query.output == OutputFormat::kJson) {
    PrintJson({{"drain", "asked"}});
  } else {
    PrintData("draining: no new shards are handed out; `muster run` ends when all is committed\n");
  }
  return kExitSucceeded;
}

int CancelCommand(const CancelOptions& options) {
  absl::StatusOr<std::unique_ptr<AdminClient>> client = Connect(options.query);
  if (!client.ok()) return PrintError(client.status());
  v1::CancelRequest request;
  request.set_reason(options.reason.empty() ? "cancelled by `muster cancel`" : options.reason);
  const absl::Status status = (*client)->Cancel(request);
  if (!status.ok()) return PrintError(status);
  if (options.query.output == OutputFormat::kJson) {
    PrintJson({{"cancel", "asked"}});
  } else {
    PrintData("cancelled; what is committed stays\n");
  }
  return kExitSucceeded;
}

int ExportCommand(const ExportCommandOptions& options) {
  absl::StatusOr<StateDirectory> state = FindStateDirectory(options.query.target);
  if (!state.ok()) return PrintError(state.status());
  const absl::StatusOr<v1::GetManifestResponse> manifest =
      ExportWhileItRuns({.fetch = [&] { return FindManifest(options.query); },
                         .write =
                             [&](const v1::GetManifestResponse& newest) {
                               return WriteExportOf(newest, *state, options.output_directory);
                             }});
  if (!manifest.ok()) return PrintError(manifest.status());
  if (options.query.output == OutputFormat::kJson) {
    PrintJson(
        {{"output_directory", options.output_directory}, {"tables", manifest->tables_size()}});
  } else {
    PrintData(fmt::format("{} written to {}\n",
                          CountText(static_cast<uint64_t>(manifest->tables_size()), "table"),
                          options.output_directory));
  }
  return kExitSucceeded;
}

}  // namespace muster
