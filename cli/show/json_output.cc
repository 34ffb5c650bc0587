#include "cli/show/json_output.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "admin/master_link.h"
#include "admin/shard_id.h"
#include "host/messages.h"

namespace muster {
namespace {

nlohmann::json Number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json EpochToJson(const v1::EpochStatus& epoch) {
  return {{"epoch", epoch.epoch()},
          {"expected", epoch.records_expected()},
          {"committed", epoch.records_committed()},
          {"done", epoch.records_done()},
          {"shards",
           {{"total", epoch.shards()},
            {"committed", epoch.shards_committed()},
            {"done", epoch.shards_done()},
            {"leased", epoch.shards_leased()},
            {"failed", epoch.shards_failed()}}},
          {"rejected_records", epoch.rejected_records()},
          {"reject_samples", RejectSamplesToJson(epoch)},
          {"metrics", MetricsToJson(epoch)}};
}

nlohmann::json DelayToJson(const v1::StreamStatus& stream) {
  if (!stream.has_delay()) return nullptr;
  const v1::DelayStatus& delay = stream.delay();
  return {{"records", delay.records()},
          {"p50_ms", delay.p50_ms()},
          {"p99_ms", delay.p99_ms()},
          {"total",
           {{"records", delay.total_records()},
            {"p50_ms", delay.total_p50_ms()},
            {"p99_ms", delay.total_p99_ms()}}}};
}

}  // namespace

nlohmann::json RejectSamplesToJson(const v1::EpochStatus& epoch) {
  nlohmann::json json = nlohmann::json::array();
  for (const std::string& sample : epoch.reject_samples()) json.push_back(sample);
  return json;
}

nlohmann::json MetricsToJson(const v1::EpochStatus& epoch) {
  nlohmann::json json = nlohmann::json::object();
  for (const v1::MetricValue& metric : epoch.metrics())
    json[metric.name()] = Number(metric.value());
  return json;
}

nlohmann::json CountersToJson(const v1::JobCounters& counters) {
  return CountersByName(counters);
}

nlohmann::json NodeToJson(const v1::NodeStatus& node) {
  nlohmann::json json = {{"name", node.name()},
                         {"role", node.role()},
                         {"state", node.state()},
                         {"pid", node.pid()},
                         {"incarnation", node.incarnation()},
                         {"heartbeat_age_ms", node.heartbeat_age_ms()},
                         {"restarts", node.restarts()},
                         {"last_exit", node.last_exit()}};
  if (node.role() != "master") {
    json["drain"] = node.drain();
    json["drain_left"] = node.drain_left();
  }
  if (node.role() == "worker") {
    json["records_committed"] = node.records_committed();
    json["shards_held"] = node.shards_held();
    json["times_us"] = {{"total", node.times().total_us()},
                        {"wait_shard", node.times().wait_shard_us()},
                        {"wait_pull", node.times().wait_pull_us()},
                        {"wait_push", node.times().wait_push_us()},
                        {"compute", node.times().compute_us()}};
    json["minibatches"] = {{"begun", node.times().minibatches_begun()},
                           {"finished", node.times().minibatches_finished()}};
    json["records_trained"] = node.times().records_trained();
    json["records_evaluated"] = node.times().records_evaluated();
  } else if (node.role() == "ps") {
    const v1::ServerCounters& counters = node.counters();
    json["partitions"] = node.partitions();
    json["partitions_serving"] = node.partitions_serving();
    json["rows"] = counters.rows();
    json["row_bytes"] = counters.row_bytes();
    json["pulls"] = counters.pulls();
    json["pulled_rows"] = counters.pulled_rows();
    json["parts_applied"] = counters.parts_applied();
    json["parts_skipped"] = counters.parts_skipped();
    json["parts_stale"] = counters.parts_stale();
    json["parts_wrong_owner"] = counters.parts_wrong_owner();
    json["snapshots"] = counters.snapshots();
    json["snapshot_bytes"] = counters.snapshot_bytes();
    json["partitions_restored"] = counters.partitions_restored();
    json["pushes"] = counters.pushes();
    json["received_bytes"] = counters.received_bytes();
    json["sent_bytes"] = counters.sent_bytes();
    json["service_us"] = counters.service_us();
    json["lanes"] = node.lanes();
    json["seen_by_workers"] = {{"pulls", node.peer_pulls()},
                               {"pull_us", node.peer_pull_us()},
                               {"pushes", node.peer_pushes()},
                               {"push_us", node.peer_push_us()}};
  }
  return json;
}

/// Of all partitions of a topic, or of one: what is not known is null.
template <typename From>
void AddLag(const From& from, nlohmann::json* to) {
  const auto add = [&](const char* name, bool known, uint64_t value) {
    (*to)[name] = known ? nlohmann::json(value) : nlohmann::json();
  };
  add("lag", from.has_lag(), from.lag());
  add("lag_ms", from.has_lag_ms(), from.lag_ms());
  add("held_back", from.has_held_back(), from.held_back());
}

nlohmann::json StreamToJson(const v1::StreamStatus& stream) {
  nlohmann::json partitions = nlohmann::json::array();
  for (const v1::TopicPartitionStatus& partition : stream.partitions()) {
    nlohmann::json json = {{"partition", partition.partition()},
                           {"begin", partition.begin()},
                           {"committed", partition.committed()},
                           {"cut", partition.cut()},
                           {"end", nullptr},
                           {"log_begin", nullptr},
                           {"stable_end", nullptr},
                           {"lost", partition.lost()},
                           {"open_ranges", partition.open_ranges()}};
    AddLag(partition, &json);
    if (partition.has_end()) json["end"] = partition.end();
    if (partition.has_log_begin()) json["log_begin"] = partition.log_begin();
    if (partition.has_stable_end()) json["stable_end"] = partition.stable_end();
    partitions.push_back(std::move(json));
  }
  nlohmann::json json = {{"topic", stream.topic()},
                         {"cluster", stream.cluster()},
                         {"open", stream.open()},
                         {"trouble", stream.trouble()},
                         {"dead_letter_trouble", stream.dead_letter_trouble()},
                         {"delay", DelayToJson(stream)},
                         {"partitions", std::move(partitions)}};
  AddLag(stream, &json);
  return json;
}

nlohmann::json StatusToJson(const v1::JobStatus& status) {
  nlohmann::json json = {{"job", status.job()},
                         {"state", ToString(PhaseOf(status.state()))},
                         {"reason", status.reason()},
                         {"uptime_ms", status.uptime_ms()},
                         {"master_incarnation", status.master_incarnation()},
                         {"grace_period", status.grace_period()},
                         {"done_seq", status.done_seq()},
                         {"commit_seq", status.commit_seq()},
                         {"last_event", status.last_event()},
                         {"datasets", nlohmann::json::array()},
                         {"nodes", nlohmann::json::array()},
                         {"counters", CountersToJson(status.counters())}};
  for (const v1::DatasetStatus& dataset : status.datasets()) {
    nlohmann::json epochs = nlohmann::json::array();
    for (const v1::EpochStatus& epoch : dataset.epochs()) epochs.push_back(EpochToJson(epoch));
    json["datasets"].push_back({{"name", dataset.name()},
                                {"mode", dataset.mode() == 0 ? "train" : "evaluate"},
                                {"epochs_total", dataset.epochs_total()},
                                {"epochs", std::move(epochs)}});
    if (dataset.has_stream()) json["datasets"].back()["stream"] = StreamToJson(dataset.stream());
  }
  for (const v1::NodeStatus& node : status.nodes()) json["nodes"].push_back(NodeToJson(node));
  return json;
}

nlohmann::json ShardToJson(const v1::ShardStatus& shard) {
  nlohmann::json reasons = nlohmann::json::array();
  for (const std::string& reason : shard.reasons()) reasons.push_back(reason);
  return {{"id", ShardIdToText(shard.id())},
          {"dataset", shard.dataset()},
          {"epoch", shard.id().epoch()},
          {"index", shard.id().index()},
          {"state", shard.state()},
          {"worker", shard.worker()},
          {"token", shard.token()},
          {"phase", shard.phase()},
          {"minibatches_started", shard.minibatches_started()},
          {"failures", shard.failures()},
          {"node_failures", shard.node_failures()},
          {"source", shard.source()},
          {"first_record", shard.first_record()},
          {"records", shard.records()},
          {"first_line", shard.first_line()},
          {"reasons", std::move(reasons)},
          {"age_ms", shard.age_ms()}};
}

nlohmann::json PartitionToJson(const v1::PartitionStatus& partition) {
  const v1::PartitionTraffic& traffic = partition.traffic();
  return {{"partition", partition.partition()},
          {"owner", partition.owner()},
          {"owner_incarnation", partition.owner_incarnation()},
          {"owner_epoch", partition.owner_epoch()},
          {"state", partition.state()},
          {"snapshot", partition.snapshot()},
          {"snapshot_cut", partition.snapshot_cut()},
          {"snapshot_age_ms", partition.snapshot_age_ms()},
          {"snapshot_files", partition.snapshot_files()},
          {"snapshot_bytes", partition.snapshot_bytes()},
          {"rows", traffic.rows()},
          {"row_bytes", traffic.row_bytes()},
          {"pulls", traffic.pulls()},
          {"pushes", traffic.pushes()},
          {"moved_rows", traffic.moved_rows()},
          {"moved_bytes", traffic.moved_bytes()},
          {"service_us", traffic.service_us()}};
}

nlohmann::json EventToJson(const v1::Event& event) {
  return {{"sequence", event.sequence()},
          {"time", WallToText(event.wall_us())},
          {"kind", event.kind()},
          {"node", event.node()},
          {"text", event.text()}};
}

std::string WallToText(uint64_t wall_us) {
  const std::time_t seconds = static_cast<std::time_t>(wall_us / 1'000'000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), wall_us / 1000 % 1000);
}

}  // namespace muster
