#include "scaler/rest/metrics_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "proto/messages/node_state.h"
#include "scaler/rest/metric_fields.h"

namespace muster::scaler::rest {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::string EscapedLabel(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') escaped.push_back('\\');
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped.push_back(c);
    }
  }
  return escaped;
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

/// Writes one family after the other, because the format wants all samples of a family together.
class Writer {
 public:
  void Family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void Sample(const Labels& labels, double value, std::string_view suffix = "") {
    std::string inside;
    for (const auto& [key, label] : labels) {
      inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", key, EscapedLabel(label));
    }
    text_ += name_;
    text_ += suffix;
    if (!inside.empty()) text_ += fmt::format("{{{}}}", inside);
    text_ += fmt::format(" {}\n", NumberText(value));
  }
  void Single(std::string_view name, std::string_view type, std::string_view help, double value) {
    Family(name, type, help);
    Sample({}, value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

double Of(uint64_t value) {
  return static_cast<double>(value);
}

const char* TypeOf(const MetricField& field) {
  return field.gauge ? "gauge" : "counter";
}

constexpr double kMicrosPerSecond = 1e6;
constexpr double kMillisPerSecond = 1e3;

void WriteJob(const Job& job, Writer* writer) {
  writer->Family("muster_job_info", "gauge", "The job; always 1.");
  writer->Sample({{"job", job.name}, {"id", job.id}}, 1);
  writer->Family("muster_job_state", "gauge", "1 for the state that the job is in.");
  for (const std::string_view state : WordsOf(job.state)) {
    writer->Sample({{"state", std::string(state)}}, ToString(job.state) == state ? 1 : 0);
  }
  writer->Single("muster_master_reachable", "gauge", "1 while the master answers the scaler.",
                 job.master_reachable ? 1 : 0);
  writer->Single("muster_job_seen_timestamp_seconds", "gauge",
                 "When the master last said how the job stands.",
                 Of(job.seen_wall_us) / kMicrosPerSecond);
  writer->Single("muster_scaler_start_timestamp_seconds", "gauge", "When the scaler started.",
                 Of(job.scaler_started_wall_us) / kMicrosPerSecond);
  if (job.progress.records_per_second.has_value()) {
    writer->Single("muster_training_records_per_second", "gauge",
                   "Training records done, over the newest seconds.",
                   *job.progress.records_per_second);
  }
  writer->Single("muster_events_total", "counter", "Events of the scaler.", Of(job.last_event_id));
  for (const MetricField& field : MetricFields::Of("muster_job_", job.counters)) {
    writer->Single(field.name, TypeOf(field), field.help, *field.value);
  }
}

void WriteGroup(const GroupStatus& group, Writer* writer) {
  for (const MetricField& field : MetricFields::Of("muster_group_", group)) {
    if (field.value.has_value()) {
      writer->Single(field.name, TypeOf(field), field.help, *field.value);
    }
  }
}

/// The sum over a dataset's epochs.
template <typename Get>
double SumOfEpochs(const DatasetStatus& dataset, const Get& get) {
  double sum = 0;
  for (const EpochStatus& epoch : dataset.epochs) sum += Of(get(epoch));
  return sum;
}

void WriteDatasets(std::span<const DatasetStatus> datasets, Writer* writer) {
  struct Family {
    const char* name;
    const char* type;
    const char* help;
    uint64_t EpochStatus::* member;
  };
  for (const Family& family :
       {Family{"muster_dataset_expected_records", "gauge", "Records of all listed epochs.",
               &EpochStatus::records_expected},
        Family{"muster_dataset_done_records", "gauge",
               "Records done; goes back when a server dies.", &EpochStatus::records_done},
        Family{"muster_dataset_committed_records", "gauge", "Records committed.",
               &EpochStatus::records_committed},
        Family{"muster_dataset_rejected_records", "gauge", "Records that trainers rejected.",
               &EpochStatus::rejected_records}}) {
    writer->Family(family.name, family.type, family.help);
    for (const DatasetStatus& dataset : datasets) {
      writer->Sample(
          {{"dataset", dataset.name}},
          SumOfEpochs(dataset, [&family](const EpochStatus& e) { return e.*family.member; }));
    }
  }
  writer->Family("muster_dataset_shards", "gauge", "Shards of all listed epochs by state.");
  constexpr std::pair<const char*, uint64_t ShardCounts::*> kStates[] = {
      {"todo", &ShardCounts::todo},
      {"leased", &ShardCounts::leased},
      {"done", &ShardCounts::done},
      {"committed", &ShardCounts::committed},
      {"failed", &ShardCounts::failed}};
  for (const DatasetStatus& dataset : datasets) {
    for (const auto& [state, member] : kStates) {
      writer->Sample({{"dataset", dataset.name}, {"state", state}},
                     SumOfEpochs(dataset, [&](const EpochStatus& e) { return e.shards.*member; }));
    }
  }
}

void WriteTrends(std::span<const MetricTrend> all, Writer* writer) {
  if (all.empty()) return;
  const std::span<const MetricTrend> trends = all.first(std::min(all.size(), kMetricsTrendsMax));
  const auto labels = [](const MetricTrend& trend, const char* epoch) {
    Labels made = {{"dataset", trend.dataset}, {"metric", trend.metric}};
    if (epoch != nullptr) made.emplace_back("epoch", epoch);
    return made;
  };
  writer->Family("muster_dataset_metric", "gauge",
                 "A metric of the trainer, in the latest epoch, the one before and the best.");
  for (const MetricTrend& trend : trends) {
    writer->Sample(labels(trend, "latest"), trend.latest);
    if (trend.previous) writer->Sample(labels(trend, "previous"), *trend.previous);
    if (trend.best) writer->Sample(labels(trend, "best"), *trend.best);
  }
  writer->Family("muster_dataset_metric_epoch", "gauge",
                 "Number of the latest and of the best epoch of a metric, from 0.");
  for (const MetricTrend& trend : trends) {
    writer->Sample(labels(trend, "latest"), Of(trend.epoch));
    if (trend.best) writer->Sample(labels(trend, "best"), Of(trend.best_epoch));
  }
  writer->Family("muster_dataset_metric_worse_epochs", "gauge",
                 "Newest epochs in a row that were clearly worse than the best.");
  for (const MetricTrend& trend : trends) {
    writer->Sample(labels(trend, nullptr), Of(trend.worse_epochs));
  }
  writer->Single("muster_dataset_metrics_omitted", "gauge",
                 "Metrics of datasets that have no samples here.", Of(all.size() - trends.size()));
}

std::optional<double> OfKnown(std::optional<uint64_t> count, double per_unit = 1) {
  return count.has_value() ? std::optional<double>(Of(*count) / per_unit) : std::nullopt;
}

/// The partitions of a topic that get samples: those with the largest lag.
std::vector<const TopicPartitionStatus*> ShownPartitions(const StreamStatus& stream) {
  std::vector<const TopicPartitionStatus*> shown;
  for (const TopicPartitionStatus& partition : stream.partitions) shown.push_back(&partition);
  if (shown.size() <= kMetricsTopicPartitionsMax) return shown;
  std::stable_sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) {
    return a->lag > b->lag;
  });  // an unknown lag comes last
  shown.resize(kMetricsTopicPartitionsMax);
  return shown;
}

void WriteDelays(std::span<const DatasetStatus> datasets, Writer* writer) {
  constexpr const char* kName = "muster_stream_delay_seconds";
  bool begun = false;
  for (const DatasetStatus& dataset : datasets) {
    if (!dataset.stream || !dataset.stream->delay) continue;
    if (!begun) {
      writer->Family(kName, "histogram",
                     "From a record's timestamp until the servers had applied it.");
    }
    begun = true;
    const DelayStatus& delay = *dataset.stream->delay;
    Labels labels = {{"dataset", dataset.name}, {"topic", dataset.stream->topic}};
    double bound = 0.004;
    for (const uint64_t below : delay.buckets) {
      Labels with_bound = labels;
      with_bound.emplace_back("le", NumberText(bound));
      writer->Sample(with_bound, Of(below), "_bucket");
      bound *= 2;
    }
    Labels all = labels;
    all.emplace_back("le", "+Inf");
    writer->Sample(all, Of(delay.total_records), "_bucket");
    writer->Sample(labels, Of(delay.total_ms) / kMillisPerSecond, "_sum");
    writer->Sample(labels, Of(delay.total_records), "_count");
  }
}

void WriteStreams(std::span<const DatasetStatus> datasets, Writer* writer) {
  const auto any = std::any_of(datasets.begin(), datasets.end(), [](const DatasetStatus& dataset) {
    return dataset.stream.has_value();
  });
  if (!any) return;
  const auto of_topics = [&](const char* name, const char* help, const auto& get) {
    writer->Family(name, "gauge", help);
    for (const DatasetStatus& dataset : datasets) {
      if (!dataset.stream) continue;
      writer->Sample({{"dataset", dataset.name}, {"topic", dataset.stream->topic}},
                     get(*dataset.stream));
    }
  };
  of_topics("muster_stream_reachable", "1 while the topic can be looked at.",
            [](const StreamStatus& stream) { return stream.trouble.empty() ? 1.0 : 0.0; });
  of_topics("muster_stream_partitions", "Partitions of the topic.",
            [](const StreamStatus& stream) { return Of(stream.partitions.size()); });
  of_topics("muster_stream_partitions_omitted", "Those with a small lag that have no samples here.",
            [](const StreamStatus& stream) {
              return Of(stream.partitions.size() - ShownPartitions(stream).size());
            });
  const auto of_partitions = [&](const char* name, const char* help, const auto& get) {
    writer->Family(name, "gauge", help);
    for (const DatasetStatus& dataset : datasets) {
      if (!dataset.stream) continue;
      for (const TopicPartitionStatus* partition : ShownPartitions(*dataset.stream)) {
        const std::optional<double> value = get(*partition);
        if (!value.has_value()) continue;  // not known
        writer->Sample({{"dataset", dataset.name},
                        {"topic", dataset.stream->topic},
                        {"partition", std::to_string(partition->partition)}},
                       *value);
      }
    }
  };
  of_partitions("muster_stream_lag_offsets", "Offsets that can be read and are not committed.",
                [](const TopicPartitionStatus& p) { return OfKnown(p.lag); });
  of_partitions("muster_stream_held_back_offsets", "Offsets that wait for open transactions.",
                [](const TopicPartitionStatus& p) { return OfKnown(p.held_back); });
  of_partitions("muster_stream_lag_seconds", "Since the first of them was first seen.",
                [](const TopicPartitionStatus& p) { return OfKnown(p.lag_ms, kMillisPerSecond); });
  of_partitions("muster_stream_committed_offset", "Everything before it is committed.",
                [](const TopicPartitionStatus& p) { return Of(p.committed); });
  of_partitions("muster_stream_lost_offsets", "Gone from the log before they were committed.",
                [](const TopicPartitionStatus& p) { return Of(p.lost); });
  WriteDelays(datasets, writer);
}

/// Writes a family with a sample of each node for which `get` returns a value.
void WriteNodes(std::span<const Node> nodes, std::string_view name, std::string_view type,
                std::string_view help, const std::function<std::optional<double>(const Node&)>& get,
                Writer* writer) {
  bool begun = false;
  for (const Node& node : nodes) {
    const std::optional<double> value = get(node);
    if (!value) continue;
    if (!begun) writer->Family(name, type, help);
    begun = true;
    writer->Sample({{"node", node.name}, {"role", node.role}}, *value);
  }
}

/// Writes a family for each number in the list of `Part`, with a sample of each node that has a
/// `part`. nullptr means that the node has none.
template <typename Part>
void WriteFields(std::span<const Node> nodes, std::string_view prefix,
                 const Part* (*part)(const Node&), Writer* writer) {
  std::vector<std::pair<const Node*, std::vector<MetricField>>> rows;
  for (const Node& node : nodes) {
    if (part(node) != nullptr) rows.emplace_back(&node, MetricFields::Of(prefix, *part(node)));
  }
  const std::vector<MetricField> families = MetricFields::Of(prefix, Part{});
  for (size_t i = 0; i < families.size(); ++i) {
    bool begun = false;
    for (const auto& [node, fields] : rows) {
      if (!fields[i].value.has_value()) continue;
      if (!std::exchange(begun, true)) {
        writer->Family(families[i].name, TypeOf(families[i]), families[i].help);
      }
      writer->Sample({{"node", node->name}, {"role", node->role}}, *fields[i].value);
    }
  }
}

void WriteWaits(std::span<const Node> nodes, Writer* writer) {
  if (std::ranges::all_of(nodes, [](const Node& n) { return n.wait == NodeWait::kNone; })) return;
  writer->Family("muster_node_waiting", "gauge",
                 "1 while it was started and the cluster has no place for it.");
  for (const Node& node : nodes) {
    if (node.wait == NodeWait::kNone) continue;
    writer->Sample(
        {{"node", node.name}, {"role", node.role}, {"why", std::string(ToString(node.wait))}}, 1);
  }
}

void WriteProcesses(std::span<const Node> nodes, Writer* writer) {
  const auto write = [&](const char* name, const char* type, const char* help, const auto& get) {
    WriteNodes(nodes, name, type, help, get, writer);
  };
  write("muster_node_up", "gauge", "1 while the node runs.", [](const Node& n) {
    return std::optional<double>(n.state == NodeState::kRunning ? 1 : 0);
  });
  WriteWaits(nodes, writer);
  write("muster_node_restarts_total", "counter", "Restarts of the node in this run.",
        [](const Node& n) { return std::optional<double>(Of(n.restarts)); });
  write("muster_node_heartbeat_age_seconds", "gauge",
        "Since the master last heard of it; missing: it sends none, or has not been heard of.",
        [](const Node& n) {
          return n.heartbeat_age_ms
                     ? std::optional<double>(Of(*n.heartbeat_age_ms) / kMillisPerSecond)
                     : std::nullopt;
        });
  write("muster_node_memory_limit_bytes", "gauge", "0: none.",
        [](const Node& n) { return std::optional<double>(Of(n.limits.memory_bytes)); });
  write("muster_node_cpu_limit_cores", "gauge", "0: none.",
        [](const Node& n) { return std::optional<double>(n.limits.cpus); });
  WriteFields<Usage>(
      nodes, "muster_node_", [](const Node& n) { return n.usage ? &*n.usage : nullptr; }, writer);
}

void WriteWorkers(std::span<const Node> nodes, Writer* writer) {
  WriteFields<WorkerStatus>(
      nodes, "muster_worker_", [](const Node& n) { return n.worker ? &*n.worker : nullptr; },
      writer);
  WriteFields<WorkerTimes>(
      nodes, "muster_worker_", [](const Node& n) { return n.worker ? &n.worker->times : nullptr; },
      writer);
}

void WriteServers(std::span<const Node> nodes, Writer* writer) {
  WriteFields<ServerStatus>(
      nodes, "muster_server_", [](const Node& n) { return n.server ? &*n.server : nullptr; },
      writer);
  WriteFields<ServerCounters>(
      nodes, "muster_server_",
      [](const Node& n) { return n.server ? &n.server->counters : nullptr; }, writer);
}

void WritePolicies(std::span<const Policy> policies, Writer* writer) {
  if (policies.empty()) return;
  writer->Family("muster_policy_paused", "gauge", "1 while it is paused.");
  for (const Policy& policy : policies) {
    writer->Sample({{"policy", policy.name}}, policy.paused ? 1 : 0);
  }
  writer->Family("muster_policy_decisions_total", "counter", "Decisions in this run.");
  for (const Policy& policy : policies) {
    writer->Sample({{"policy", policy.name}}, Of(policy.decisions));
  }
  writer->Family("muster_policy_refused_total", "counter",
                 "Proposals held back by cooldown, budget or a pause.");
  for (const Policy& policy : policies) {
    writer->Sample({{"policy", policy.name}}, Of(policy.refused));
  }
}

void WriteRest(const RestStats& stats, Writer* writer) {
  writer->Family("muster_rest_answers_total", "counter", "Answers of the REST interface.");
  for (const int digit : {2, 3, 4, 5}) {
    writer->Sample({{"status", fmt::format("{}xx", digit)}}, Of(stats.answers.at(digit)));
  }
  writer->Single("muster_rest_connections", "gauge", "Connections now.", Of(stats.connections));
  writer->Single("muster_rest_connections_refused_total", "counter",
                 "Connections beyond the limit.", Of(stats.connections_refused));
  writer->Single("muster_rest_streams", "gauge", "Event streams now.", Of(stats.streams));
  writer->Single("muster_rest_streams_dropped_total", "counter",
                 "Event streams of clients that did not read.", Of(stats.streams_dropped));
}

}  // namespace

std::string MetricsText(const Picture& picture, const RestStats& rest) {
  Writer writer;
  const std::span<const Node> nodes(picture.nodes.nodes);
  const std::span<const DatasetStatus> datasets(picture.datasets.datasets);
  const size_t nodes_shown = std::min(nodes.size(), kMetricsNodesMax);
  WriteJob(picture.job, &writer);
  if (picture.job.group.has_value()) WriteGroup(*picture.job.group, &writer);
  WriteDatasets(datasets.first(std::min(datasets.size(), kMetricsDatasetsMax)), &writer);
  WriteTrends(picture.job.metric_trends, &writer);
  WriteStreams(datasets.first(std::min(datasets.size(), kMetricsDatasetsMax)), &writer);
  writer.Single("muster_nodes", "gauge", "Nodes of the job.", Of(nodes.size()));
  writer.Single("muster_nodes_omitted", "gauge", "Nodes that have no samples here.",
                Of(nodes.size() - nodes_shown));
  WriteProcesses(nodes.first(nodes_shown), &writer);
  WriteWorkers(nodes.first(nodes_shown), &writer);
  WriteServers(nodes.first(nodes_shown), &writer);
  WritePolicies(picture.policies.policies, &writer);
  WriteRest(rest, &writer);
  return writer.Take();
}

}  // namespace muster::scaler::rest
