#include "cli/show/text_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "base/text.h"
#include "cli/show/fit.h"
#include "cli/show/group_text.h"
#include "cli/show/json_output.h"
#include "cli/show/progress.h"
#include "host/messages.h"
#include "proto/messages/node_state.h"

namespace muster {

namespace {

/// "data/a.csv, lines 17 to 32", or "clicks[3], offsets 17 to 32", or "16 records from 17 on".
std::string ShardRangeText(const ShardStatus& shard) {
  if (shard.records == 0) return "-";
  if (shard.source.empty()) {
    return fmt::format("{} from {} on", CountText(shard.records, "record"), shard.first_record);
  }
  if (shard.first_line == 0) {
    return fmt::format("{}, offsets {} to {}", shard.source, shard.first_record,
                       shard.first_record + shard.records - 1);
  }
  return fmt::format("{}, lines {} to {}", shard.source, shard.first_line,
                     shard.first_line + shard.records - 1);
}

/// How the loops of a worker have spent their time since its process began.
std::string LoopsText(const WorkerTimes& times) {
  const uint64_t sum =
      times.compute_us + times.wait_shard_us + times.wait_pull_us + times.wait_push_us;
  if (times.compute_us == 0 || sum == 0) return "";
  return fmt::format(", {:.0f} % computing",
                     100.0 * static_cast<double>(times.compute_us) / static_cast<double>(sum));
}

/// How long a server takes for a request.
std::string ServiceText(const ServerCounters& counters) {
  const uint64_t requests = counters.pulls + counters.pushes;
  if (counters.service_us == 0 || requests == 0) return "";
  return fmt::format(", {:.0f} us a request",
                     static_cast<double>(counters.service_us) / static_cast<double>(requests));
}

std::string StateText(const NodeStatus& node) {
  const std::string_view state = ToString(node.state);
  if (node.drain == DrainState::kNone) return std::string(state);
  const std::string_view drain = ToString(node.drain);
  if (node.drain_left == 0) return fmt::format("{}, {}", state, drain);
  return fmt::format("{}, {} ({} left)", state, drain, node.drain_left);
}

/// The time since the master last heard of the node. "-" if it never did, or never will.
std::string HeartbeatText(const NodeStatus& node) {
  const bool ended = node.state == NodeState::kExited || node.state == NodeState::kFinished;
  if (ended || !node.heartbeat_age_ms) return "-";
  return fmt::format("{} ms", *node.heartbeat_age_ms);
}

std::string WorkText(const NodeStatus& node) {
  if (node.state == NodeState::kWaiting) return WaitText(node.wait, Printable(node.wait_reason));
  if (node.worker) {
    return fmt::format("{} held, {} committed{}", CountText(node.worker->shards_held, "shard"),
                       CountText(node.worker->records_committed, "record"),
                       LoopsText(node.worker->times));
  }
  if (!node.server) return "";
  const ServerCounters& counters = node.server->counters;
  return fmt::format("{}/{} partitions, {}, {:.1f} MB{}", node.server->partitions_serving,
                     node.server->partitions, CountText(counters.rows, "row"),
                     static_cast<double>(counters.row_bytes) / 1e6, ServiceText(counters));
}

/// A row about one epoch, or several together.
std::vector<std::string> EpochRow(const std::string& dataset, std::string number,
                                  const EpochStatus& epoch, bool shards_known) {
  const auto shards = [shards_known](uint64_t count) {
    return shards_known ? CountText(count) : std::string("-");
  };
  return {dataset,
          std::move(number),
          CountText(epoch.records_expected),
          CountText(epoch.records_done),
          CountText(epoch.records_committed),
          shards(epoch.shards.total),
          shards(epoch.shards.leased),
          shards(epoch.shards.failed)};
}

std::string EpochsText(const JobStatus& status, EpochsShown shown) {
  std::vector<std::vector<std::string>> rows = {
      {"DATASET", "EPOCH", "RECORDS", "DONE", "COMMITTED", "SHARDS", "LEASED", "FAILED"}};
  bool together = false;
  for (const DatasetStatus& dataset : status.datasets) {
    const std::vector<EpochGroup> groups = GroupsOf(dataset, shown);
    for (const EpochGroup& group : groups) {
      together = together || !group.single();
      rows.push_back(EpochRow(dataset.name, NumberText(group), group.sum, true));
    }
    if (groups.size() == dataset.epochs_total) continue;
    const bool listed = dataset.epochs.size() >= dataset.epochs_total;
    rows.push_back(EpochRow(dataset.name, "all", SumOf(dataset).sum, listed));
  }
  std::string text = FormatTable(rows);
  if (together) text += "each epoch by itself: --all-epochs\n";
  return text;
}

/// The metrics of every listed epoch that has any. Each metric has a column.
std::string MetricsText(const JobStatus& status) {
  std::set<std::string> names;
  for (const DatasetStatus& dataset : status.datasets) {
    for (const EpochStatus& epoch : dataset.epochs) {
      for (const auto& [name, value] : epoch.metrics) names.insert(name);
    }
  }
  if (names.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"DATASET", "EPOCH"}};
  for (const std::string& name : names) rows[0].push_back(Printable(name));
  for (const DatasetStatus& dataset : status.datasets) {
    for (const EpochStatus& epoch : dataset.epochs) {
      if (epoch.metrics.empty()) continue;
      std::vector<std::string>& row = rows.emplace_back(
          std::vector<std::string>{dataset.name, std::to_string(epoch.epoch + 1)});
      for (const std::string& name : names) {
        const auto value = epoch.metrics.find(name);
        row.push_back(value == epoch.metrics.end() ? "-" : MetricText(value->second));
      }
    }
  }
  return FormatTable(rows);
}

std::string TrendsText(const JobStatus& status) {
  std::vector<std::vector<std::string>> rows = {
      {"DATASET", "METRIC", "EPOCH", "NEWEST", "BEFORE", "BEST"}};
  for (const MetricTrend& trend : status.metric_trends) {
    rows.push_back(
        {trend.dataset, Printable(trend.metric), EpochText(trend), MetricText(trend.latest),
         trend.previous ? MetricText(*trend.previous) : "-",
         trend.best ? fmt::format("{} in epoch {}", MetricText(*trend.best), trend.best_epoch + 1)
                    : "-"});
  }
  std::string text = rows.size() == 1 ? "" : FormatTable(rows);
  for (const MetricTrend& trend : status.metric_trends) {
    if (!trend.remark.empty()) text += Printable(trend.remark) + "\n";
  }
  return text;
}

/// The most partitions of a topic that are listed for people.
constexpr size_t kTopicPartitionsShown = 20;

/// The partitions of a topic that are furthest behind, in order; all, if they are few.
std::vector<const TopicPartitionStatus*> FurthestBehind(const StreamStatus& stream) {
  std::vector<const TopicPartitionStatus*> shown;
  for (const TopicPartitionStatus& partition : stream.partitions) shown.push_back(&partition);
  if (shown.size() <= kTopicPartitionsShown) return shown;
  // An unknown lag may be the largest.
  const auto lag = [](const TopicPartitionStatus* partition) {
    return partition->lag.value_or(std::numeric_limits<uint64_t>::max());
  };
  std::ranges::stable_sort(shown, std::ranges::greater(), lag);
  shown.resize(kTopicPartitionsShown);
  std::ranges::sort(shown);
  return shown;
}

}  // namespace

/// Figures of a topic: those that other tools show as lag, and those that they cannot know.
std::string StreamsText(const JobStatus& status) {
  std::vector<std::vector<std::string>> rows = {
      {"TOPIC", "PARTITION", "BEGIN", "COMMITTED", "CUT", "END", "LAG", "LAG TIME", "LOG BEGINS"}};
  std::vector<const StreamStatus*> streams;
  for (const DatasetStatus& dataset : status.datasets) {
    if (dataset.stream) streams.push_back(&*dataset.stream);
  }
  const auto known = [](const std::optional<uint64_t>& count) {
    return count ? CountText(*count) : "-";
  };
  for (const StreamStatus* stream : streams) {
    for (const TopicPartitionStatus* partition : FurthestBehind(*stream)) {
      rows.push_back({stream->topic, std::to_string(partition->partition),
                      CountText(partition->begin), CountText(partition->committed),
                      CountText(partition->cut), known(partition->stable_end),
                      known(partition->lag),
                      partition->lag_ms
                          ? fmt::format("{:.1f} s", static_cast<double>(*partition->lag_ms) / 1e3)
                          : "-",
                      known(partition->log_begin)});
    }
  }
  std::string text = rows.size() == 1 ? "" : FormatTable(rows);
  for (const StreamStatus* stream : streams) {
    if (stream->partitions.size() > kTopicPartitionsShown) {
      text += fmt::format(
          "topic {}: the {} of {} partitions that are furthest behind; --json lists all\n",
          stream->topic, kTopicPartitionsShown, CountText(stream->partitions.size()));
    }
    if (!stream->lag) {
      text += fmt::format("topic {}: the lag of the job is not known yet\n", stream->topic);
    }
    if (stream->held_back.value_or(0) > 0) {
      text += fmt::format("topic {}: {} {} for open transactions\n", stream->topic,
                          CountText(*stream->held_back, "more offset"),
                          *stream->held_back == 1 ? "waits" : "wait");
    }
  }
  for (const StreamStatus* stream : streams) {
    if (!stream->delay || stream->delay->records == 0) continue;
    text += fmt::format(
        "topic {}: from a record's timestamp to the weights {} (p50), {} (p99), of the last {}\n",
        stream->topic, MillisecondsText(stream->delay->p50_ms),
        MillisecondsText(stream->delay->p99_ms), CountText(stream->delay->records, "record"));
  }
  return text;
}

std::string StatusText(const JobStatus& status, EpochsShown shown, size_t columns) {
  std::string text = fmt::format("{}: {}", status.name, ToString(status.state));
  if (status.running_ms > 0) {
    const std::string time = DurationText(std::chrono::milliseconds(status.running_ms));
    text += IsTerminal(status.state) ? fmt::format(" after {}", time)
                                     : fmt::format(", for {} so far", time);
  }
  text += "\n";
  if (IsTerminal(status.state) && !status.reason.empty()) {
    text += fmt::format("  {}\n", status.reason);
  }
  for (const std::string& trouble : TroublesOf(status)) text += fmt::format("  {}\n", trouble);
  if (status.progress.records_per_second.has_value() && !IsTerminal(status.state)) {
    text += fmt::format("  {}, {}\n", RateText(*status.progress.records_per_second),
                        RemainingText(status.progress.remaining_seconds));
  }
  if (status.grace_period) text += "  the master was started again and collects leases\n";
  text += GroupText(status, columns);
  text += EpochsText(status, shown);
  if (shown == EpochsShown::kAll) text += MetricsText(status);
  text += TrendsText(status);
  text += KeptText(status.kept_epochs);
  text += StreamsText(status);
  const JobCounters& counters = status.counters;
  text += fmt::format(
      "{} delivered again, {} replayed, {} re-verified, {} expired, {} rejected\n",
      CountText(counters.redelivered_minibatches, "minibatch", "minibatches"),
      CountText(counters.replayed_shards, "shard"), CountText(counters.reverified_runs, "run"),
      CountText(counters.expired_leases, "lease"), CountText(counters.rejected_records, "record"));
  if (!status.last_event.empty())
    text += fmt::format("last: {}\n", Printable(FirstLine(status.last_event)));
  return text;
}

std::string NodesText(const JobStatus& status) {
  std::vector<std::vector<std::string>> rows = {
      {"NODE", "STATE", "PID", "HEARTBEAT", "RESTARTS", "LAST EXIT", "WORK"}};
  for (const NodeStatus& node : status.nodes) {
    const std::string name = node.host.empty() ? node.name : node.name + " on " + node.host;
    rows.push_back({name, StateText(node), std::to_string(node.pid), HeartbeatText(node),
                    std::to_string(node.restarts), node.last_exit.empty() ? "-" : node.last_exit,
                    WorkText(node)});
  }
  return FormatTable(rows);
}

std::string ShardsText(const ShardPage& page) {
  std::vector<std::vector<std::string>> rows = {
      {"SHARD", "DATASET", "STATE", "WORKER", "PHASE", "FAILURES", "AGE", "RECORDS"}};
  for (const ShardStatus& shard : page.shards) {
    const bool leased = shard.state == "leased";
    rows.push_back({shard.id, shard.dataset, shard.state, shard.worker.empty() ? "-" : shard.worker,
                    shard.phase.empty() ? "-" : shard.phase,
                    fmt::format("{} (+{} of nodes)", shard.failures, shard.node_failures),
                    leased ? DurationText(std::chrono::milliseconds(shard.age_ms)) : "-",
                    ShardRangeText(shard)});
  }
  // Each line of the table is followed by the reasons why the shard has failed.
  const std::string table = FormatTable(rows);
  std::string text;
  size_t begin = 0;
  for (int line = -1; begin < table.size(); ++line) {
    const size_t end = table.find('\n', begin) + 1;
    text += table.substr(begin, end - begin);
    begin = end;
    if (line < 0) continue;
    for (const std::string& reason : page.shards[static_cast<size_t>(line)].reasons) {
      text += "    ";
      for (char c : reason) text += c == '\n' ? "\n      " : std::string(1, c);
      text += "\n";
    }
  }
  if (page.total > page.shards.size()) {
    text += fmt::format("{} of {} shards; see more with --limit and --offset\n",
                        CountText(page.shards.size()), CountText(page.total));
  }
  return text;
}

std::string PartitionsText(const PartitionList& list) {
  std::vector<std::vector<std::string>> rows = {{"PARTITION", "OWNER", "STATE", "SNAPSHOT", "ROWS",
                                                 "MB", "PULLS", "PUSHES", "ROWS MOVED", "SERVICE"}};
  for (const PartitionStatus& partition : list.partitions) {
    const PartitionTraffic& traffic = partition.traffic;
    std::string snapshot = "-";
    if (partition.snapshot != 0) {
      snapshot = partition.snapshot_age_ms
                     ? DurationText(std::chrono::milliseconds(*partition.snapshot_age_ms)) + " ago"
                     : "there";
    }
    rows.push_back({std::to_string(partition.partition), partition.owner, partition.state,
                    std::move(snapshot), CountText(traffic.rows),
                    fmt::format("{:.1f}", static_cast<double>(traffic.row_bytes) / 1e6),
                    CountText(traffic.pulls), CountText(traffic.pushes),
                    CountText(traffic.moved_rows),
                    fmt::format("{:.3f} s", static_cast<double>(traffic.service_us) / 1e6)});
  }
  std::string text = FormatTable(rows);
  if (list.total > list.partitions.size()) {
    text += fmt::format("{} of {} partitions; see more with --limit and --offset\n",
                        CountText(list.partitions.size()), CountText(list.total));
  }
  return text;
}

std::string EventText(const MasterEvent& event) {
  std::string text = fmt::format("{}  {}{}{} ", WallToText(event.wall_us), event.kind,
                                 event.node.empty() ? "" : " ", event.node);
  // The event of a node's end contains the last lines of its log.
  std::string_view indent = " ";
  for (std::string_view rest = event.text;; indent = "    ") {
    const size_t end = rest.find('\n');
    text += fmt::format("{}{}\n", indent, Printable(rest.substr(0, end)));
    if (end == std::string_view::npos || end + 1 == rest.size()) return text;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace muster
