#include "cli/run/summary.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/show/json_output.h"
#include "cli/show/progress.h"

namespace muster {
namespace {

struct Waiting {
  double shards = 0;
  double pulls = 0;
  double pushes = 0;
};

/// Shares of the workers' time, all workers together.
Waiting WaitingOf(const v1::JobStatus& status) {
  v1::WorkerTimes sum;
  for (const v1::NodeStatus& node : status.nodes()) {
    sum.set_total_us(sum.total_us() + node.times().total_us());
    sum.set_wait_shard_us(sum.wait_shard_us() + node.times().wait_shard_us());
    sum.set_wait_pull_us(sum.wait_pull_us() + node.times().wait_pull_us());
    sum.set_wait_push_us(sum.wait_push_us() + node.times().wait_push_us());
  }
  if (sum.total_us() == 0) return {};
  const double total = static_cast<double>(sum.total_us());
  return {.shards = static_cast<double>(sum.wait_shard_us()) / total,
          .pulls = static_cast<double>(sum.wait_pull_us()) / total,
          .pushes = static_cast<double>(sum.wait_push_us()) / total};
}

double SecondsOf(std::chrono::milliseconds duration) {
  return static_cast<double>(duration.count()) / 1000.0;
}

double TrainingRate(const SummaryInput& input) {
  const double seconds = SecondsOf(input.training);
  return seconds > 0 ? static_cast<double>(input.trained_records) / seconds : 0;
}

/// The last epoch of which something is committed.
const v1::EpochStatus* LastEpoch(const v1::DatasetStatus& dataset) {
  const v1::EpochStatus* last = nullptr;
  for (const v1::EpochStatus& epoch : dataset.epochs()) {
    if (epoch.records_committed() > 0) last = &epoch;
  }
  return last;
}

/// How far behind the job is, as far as anybody knows.
std::string BehindText(const v1::StreamStatus& stream) {
  if (!stream.has_lag()) return "nobody knows how far behind";
  std::string text = fmt::format("{} behind", CountText(stream.lag(), "offset"));
  if (!stream.trouble().empty()) text += " when it was last seen";
  if (stream.held_back() > 0) {
    text +=
        fmt::format(", {} {} for open transactions", CountText(stream.held_back(), "more offset"),
                    stream.held_back() == 1 ? "waits" : "wait");
  }
  return text;
}

std::string StreamText(const v1::DatasetStatus& dataset) {
  const v1::StreamStatus& stream = dataset.stream();
  std::string text = fmt::format("  topic {}: {}", stream.topic(), BehindText(stream));
  // Shards that are run again and again have delays, too.
  if (stream.has_delay() && LastEpoch(dataset) != nullptr) {
    text += fmt::format("; from a record's timestamp to the weights {} (p50), {} (p99)",
                        MillisecondsText(stream.delay().total_p50_ms()),
                        MillisecondsText(stream.delay().total_p99_ms()));
  }
  text += "\n";
  if (!stream.dead_letter_trouble().empty()) {
    text += fmt::format("    rejected records cannot be written: {}\n",
                        Printable(stream.dead_letter_trouble()));
  }
  return text;
}

}  // namespace

nlohmann::json SummaryToJson(const SummaryInput& input) {
  const v1::JobStatus status = input.status.value_or(v1::JobStatus());
  nlohmann::json json = {{"job", input.job},
                         {"state", ToString(input.outcome.state)},
                         {"reason", input.outcome.reason},
                         {"datasets", nlohmann::json::array()},
                         {"metrics", nlohmann::json::object()},
                         {"redelivered_minibatches", status.counters().redelivered_minibatches()},
                         {"restarts",
                          {{"master", input.master_restarts},
                           {"scaler", input.scaler_restarts},
                           {"ps", input.server_restarts},
                           {"worker", input.worker_restarts}}},
                         {"counters", CountersToJson(status.counters())},
                         {"seconds", SecondsOf(input.elapsed)},
                         {"training_seconds", SecondsOf(input.training)},
                         {"records_per_second", TrainingRate(input)}};
  const Waiting waiting = WaitingOf(status);
  json["waiting"] = {
      {"shards", waiting.shards}, {"pulls", waiting.pulls}, {"pushes", waiting.pushes}};
  for (const v1::DatasetStatus& dataset : status.datasets()) {
    nlohmann::json epochs = nlohmann::json::array();
    for (const v1::EpochStatus& epoch : dataset.epochs()) {
      epochs.push_back({{"epoch", epoch.epoch()},
                        {"expected", epoch.records_expected()},
                        {"committed", epoch.records_committed()},
                        {"failed_shards", epoch.shards_failed()},
                        {"rejected_records", epoch.rejected_records()},
                        {"reject_samples", RejectSamplesToJson(epoch)},
                        {"metrics", MetricsToJson(epoch)}});
    }
    json["datasets"].push_back({{"name", dataset.name()},
                                {"mode", dataset.mode() == 0 ? "train" : "evaluate"},
                                {"epochs", std::move(epochs)}});
    if (dataset.has_stream()) json["datasets"].back()["stream"] = StreamToJson(dataset.stream());
    if (const v1::EpochStatus* last = LastEpoch(dataset)) {
      json["metrics"][dataset.name()] = MetricsToJson(*last);
    }
  }
  return json;
}

std::string SummaryText(const SummaryInput& input) {
  std::string text = fmt::format("{}: {} after {}\n", input.job, ToString(input.outcome.state),
                                 DurationText(input.elapsed));
  if (!input.outcome.reason.empty()) text += fmt::format("  {}\n", input.outcome.reason);
  if (input.outcome.state == RunOutcome::State::kDrained) {
    // A drained job has a reason only when something keeps it from going on, as lost snapshots do.
    const std::string trouble = input.status.has_value() ? input.status->reason() : "";
    text += trouble.empty()
                ? "  not finished: the same command goes on from here\n"
                : fmt::format(
                      "  not finished: {}\n  once that is over, the same command goes on "
                      "from here\n",
                      Printable(trouble));
  }
  if (!input.status.has_value()) return text;
  const v1::JobStatus& status = *input.status;
  for (const v1::DatasetStatus& dataset : status.datasets()) {
    for (const v1::EpochStatus& epoch : dataset.epochs()) {
      text += fmt::format("  {:<12} epoch {}: {} of {} records committed", dataset.name(),
                          epoch.epoch() + 1, CountText(epoch.records_committed()),
                          CountText(epoch.records_expected()));
      if (epoch.shards_failed() > 0) {
        text += ", " + CountText(epoch.shards_failed(), "FAILED shard");
      }
      if (epoch.rejected_records() > 0) {
        text += ", " + CountText(epoch.rejected_records(), "rejected record");
        if (epoch.reject_samples_size() > 0) {
          text += fmt::format(" (one: {})", epoch.reject_samples(0));
        }
      }
      const nlohmann::json metrics = MetricsToJson(epoch);
      for (const auto& [name, value] : metrics.items()) {
        text += value.is_number() ? fmt::format(", {} {:.4f}", name, value.get<double>())
                                  : fmt::format(", {} undefined", name);
      }
      text += "\n";
    }
    if (dataset.has_stream()) text += StreamText(dataset);
  }
  const Waiting waiting = WaitingOf(status);
  text += fmt::format(
      "  {} records/s in training; workers waited {:.1f} % for shards, {:.1f} % for pulls, {:.1f} "
      "% "
      "for pushes\n",
      CountText(static_cast<uint64_t>(TrainingRate(input))), 100 * waiting.shards,
      100 * waiting.pulls, 100 * waiting.pushes);
  text += fmt::format(
      "  restarts: master {}, scaler {}, ps {}, workers {}; {} delivered again\n",
      input.master_restarts, input.scaler_restarts, input.server_restarts, input.worker_restarts,
      CountText(status.counters().redelivered_minibatches(), "minibatch", "minibatches"));
  return text;
}

}  // namespace muster
