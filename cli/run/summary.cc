#include "cli/run/summary.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "cli/show/epochs.h"
#include "cli/show/progress.h"
#include "proto/fields/json.h"

namespace muster {
namespace {

struct Waiting {
  double shards = 0;
  double pulls = 0;
  double pushes = 0;
};

/// How the workers' time was spent, for all workers together.
Waiting WaitingOf(const JobStatus& status) {
  WorkerTimes sum;
  for (const NodeStatus& node : status.nodes) {
    if (!node.worker) continue;
    sum.total_us += node.worker->times.total_us;
    sum.wait_shard_us += node.worker->times.wait_shard_us;
    sum.wait_pull_us += node.worker->times.wait_pull_us;
    sum.wait_push_us += node.worker->times.wait_push_us;
  }
  if (sum.total_us == 0) return {};
  const double total = static_cast<double>(sum.total_us);
  return {.shards = static_cast<double>(sum.wait_shard_us) / total,
          .pulls = static_cast<double>(sum.wait_pull_us) / total,
          .pushes = static_cast<double>(sum.wait_push_us) / total};
}

double SecondsOf(std::chrono::milliseconds duration) {
  return static_cast<double>(duration.count()) / 1000.0;
}

double TrainingRate(const SummaryInput& input) {
  const double seconds = SecondsOf(input.training);
  return seconds > 0 ? static_cast<double>(input.trained_records) / seconds : 0;
}

/// How fast this run trained, and what its workers waited for.
std::string RateText(const SummaryInput& input) {
  if (input.trained_records == 0 && input.outcome.state == RunOutcome::State::kSucceeded) {
    return "  this run trained no records: all of them had been trained before\n";
  }
  const Waiting waiting = WaitingOf(*input.status);
  return fmt::format(
      "  {} records/s in training; workers waited {:.1f} % for {}, {:.1f} % for pulls, {:.1f} % "
      "for pushes\n",
      CountText(static_cast<uint64_t>(TrainingRate(input))), 100 * waiting.shards,
      // A member gets its shards together with the next step, so this wait includes the wait for a
      // sum.
      input.status->group.has_value() ? "shards and each other" : "shards", 100 * waiting.pulls,
      100 * waiting.pushes);
}

/// How far behind the job is, if that is known.
std::string BehindText(const StreamStatus& stream) {
  if (!stream.lag) return "its lag is not known";
  std::string text = fmt::format("{} behind", CountText(*stream.lag, "offset"));
  if (!stream.trouble.empty()) text += " when it was last seen";
  if (stream.held_back.value_or(0) > 0) {
    text +=
        fmt::format(", {} {} for open transactions", CountText(*stream.held_back, "more offset"),
                    *stream.held_back == 1 ? "waits" : "wait");
  }
  return text;
}

std::string StreamText(const DatasetStatus& dataset) {
  const StreamStatus& stream = *dataset.stream;
  std::string text = fmt::format("  topic {}: {}", stream.topic, BehindText(stream));
  // Shards that run again have delays, too, so some epoch must be committed.
  if (stream.delay && LastCommittedEpoch(dataset) != nullptr) {
    text += fmt::format("; from a record's timestamp to the weights {} (p50), {} (p99)",
                        MillisecondsText(stream.delay->total_p50_ms),
                        MillisecondsText(stream.delay->total_p99_ms));
  }
  text += "\n";
  if (!stream.dead_letter_trouble.empty()) {
    text += fmt::format("    rejected records cannot be written: {}\n",
                        Printable(stream.dead_letter_trouble));
  }
  return text;
}

/// The line of one epoch, or of several together.
std::string GroupText(const DatasetStatus& dataset, const EpochGroup& group) {
  const EpochStatus& epoch = group.sum;
  std::string text =
      fmt::format("  {:<12} {} {}: {} of {} records committed", dataset.name,
                  group.single() ? "epoch" : "epochs", NumberText(group),
                  CountText(epoch.records_committed), CountText(epoch.records_expected));
  if (epoch.shards.failed > 0) text += ", " + CountText(epoch.shards.failed, "FAILED shard");
  if (epoch.rejected_records > 0) {
    text += ", " + CountText(epoch.rejected_records, "rejected record");
    if (!epoch.reject_samples.empty()) {
      text += fmt::format(" (for example {})", epoch.reject_samples[0]);
    }
  }
  for (const auto& [name, value] : epoch.metrics) {
    text += std::isfinite(value) ? fmt::format(", {} {:.4f}", name, value)
                                 : fmt::format(", {} undefined", name);
  }
  return text + "\n";
}

}  // namespace

nlohmann::json SummaryToJson(const SummaryInput& input) {
  const JobStatus status = input.status.value_or(JobStatus());
  const Waiting waiting = WaitingOf(status);
  nlohmann::json json = {
      {"name", input.job},
      {"state", ToString(input.outcome.state)},
      {"reason", input.outcome.reason},
      {"datasets", JsonFields::Value(status.datasets)},
      {"metrics", nlohmann::json::object()},
      {"metric_trends", JsonFields::Value(status.metric_trends)},
      {"kept_epochs", JsonFields::Value(status.kept_epochs)},
      {"restarts",
       {{"master", input.master_restarts},
        {"scaler", input.scaler_restarts},
        {"ps", input.server_restarts},
        {"worker", input.worker_restarts}}},
      {"counters", ToJson(status.counters)},
      {"seconds", SecondsOf(input.elapsed)},
      {"training_seconds", SecondsOf(input.training)},
      {"records_per_second", TrainingRate(input)},
      {"waiting",
       {{"shards", waiting.shards}, {"pulls", waiting.pulls}, {"pushes", waiting.pushes}}}};
  for (const DatasetStatus& dataset : status.datasets) {
    if (const EpochStatus* last = LastCommittedEpoch(dataset)) {
      json["metrics"][dataset.name] = JsonFields::Value(last->metrics);
    }
  }
  return json;
}

std::string SummaryText(const SummaryInput& input) {
  std::string text = fmt::format("{}: {} after {}\n", input.job, ToString(input.outcome.state),
                                 DurationText(input.elapsed));
  if (!input.outcome.reason.empty()) text += fmt::format("  {}\n", input.outcome.reason);
  if (input.outcome.state == RunOutcome::State::kDrained) {
    // A drained job has a reason only if a problem stopped it, for example lost snapshots.
    const std::string trouble = input.status.has_value() ? input.status->reason : "";
    text += trouble.empty()
                ? "  not finished: the same command continues the job\n"
                : fmt::format(
                      "  not finished: {}\n  when that is fixed, the same command continues the "
                      "job\n",
                      Printable(trouble));
  }
  if (!input.status.has_value()) return text;
  const JobStatus& status = *input.status;
  bool together = false;
  for (const DatasetStatus& dataset : status.datasets) {
    for (const EpochGroup& group : GroupsOf(dataset, EpochsShown::kNewest)) {
      together = together || !group.single();
      text += GroupText(dataset, group);
    }
    if (dataset.epochs.size() > 1) {
      const std::string trends =
          TrendLine(status.metric_trends, dataset.name, "               ", 0);
      if (!trends.empty()) text += trends + "\n";
    }
    if (dataset.stream) text += StreamText(dataset);
  }
  for (const MetricTrend& trend : status.metric_trends) {
    if (!trend.remark.empty()) text += fmt::format("  {}\n", Printable(trend.remark));
  }
  if (const std::string kept = KeptText(status.kept_epochs); !kept.empty()) text += "  " + kept;
  if (together) text += "  each epoch by itself: muster status --all-epochs\n";
  text += RateText(input);
  text += fmt::format(
      "  restarts: master {}, scaler {}, ps {}, workers {}; {} delivered again\n",
      input.master_restarts, input.scaler_restarts, input.server_restarts, input.worker_restarts,
      CountText(status.counters.redelivered_minibatches, "minibatch", "minibatches"));
  return text;
}

}  // namespace muster
