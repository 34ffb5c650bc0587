#include "scaler/policy/worker_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include "base/text.h"

#include "scaler/model/sample_span.h"

namespace muster::scaler {
namespace {

/// "7 %"; never "-0 %".
std::string Percent(double share) {
  return fmt::format("{:.0f} %", std::round(100 * share) + 0.0);
}

}  // namespace

std::vector<Proposal> WorkerCountPolicy::Step(const JobView& view) {
  if (view.workers_min >= view.workers_max) return {};
  places_.Step(view);
  const Workers workers = Look(view);
  // Nothing new is known between two measurements, so another answer would only repeat the last
  // one.
  const std::optional<Window> window = Measure(view, workers);
  if (!window.has_value()) return {};
  Remember(*window, workers, view.now);
  if (workers.running != workers.wanted || workers.wanted == 0) return {};
  std::optional<Proposal> proposal = Propose(view, workers, *window);
  if (!proposal.has_value()) return {};
  return {*std::move(proposal)};
}

WorkerCountPolicy::Workers WorkerCountPolicy::Look(const JobView& view) const {
  Workers workers;
  double cpus = 0;
  double all = 0;
  uint32_t seen = 0;
  for (const NodeView& node : view.nodes) {
    const std::optional<Span> span =
        SpanSince(node, view.now - options_.window, options_.window / 2);
    if (span.has_value()) all += span->cpus();
    if (node.role != NodeRole::kWorker) continue;
    ++workers.wanted;
    workers.lives += fmt::format("{}/{}/{};", node.name, node.start, static_cast<int>(node.state));
    if (node.state != NodeState::kRunning) continue;
    ++workers.running;
    if (!span.has_value()) continue;
    ++seen;
    cpus += span->cpus();
    const double waited =
        span->Rate(span->end->worker.waiting_shards - span->begin->worker.waiting_shards);
    workers.waits += std::min(waited, 1.0);
    workers.waiting += waited >= options_.only_waits ? 1 : 0;
    workers.served += WaitsForServers(*span, options_.only_waits) ? 1 : 0;
  }
  if (seen > 0) {
    workers.cpus = cpus / seen;
    workers.waits /= seen;
  }
  if (view.machine.cpus > 0) workers.spare = view.machine.cpus - all;
  if (view.idle_cpus.has_value()) {
    workers.spare = std::min(workers.spare.value_or(*view.idle_cpus), *view.idle_cpus);
  }
  return workers;
}

std::optional<WorkerCountPolicy::Window> WorkerCountPolicy::Measure(const JobView& view,
                                                                    const Workers& workers) {
  if (view.activity != Activity::kTraining || workers.lives != lives_) {
    lives_ = workers.lives;
    steady_since_.reset();
    window_begin_.reset();
    kept_up_ = 0;
    if (view.activity == Activity::kTraining) steady_since_ = view.now;
    return std::nullopt;
  }
  if (!steady_since_.has_value()) steady_since_ = view.now;
  if (view.now - *steady_since_ < options_.settle) return std::nullopt;
  // If the total went back, another master counts it, so this window says nothing.
  const bool began = window_begin_.has_value() && view.records_trained >= records_begin_;
  if (began && view.now - *window_begin_ < options_.window) return std::nullopt;
  std::optional<Window> window;
  if (began) {
    const double seconds = std::chrono::duration<double>(view.now - *window_begin_).count();
    window = {.rate = static_cast<double>(view.records_trained - records_begin_) / seconds};
    if (view.backlog_records.has_value() && backlog_begin_.has_value()) {
      window->backlog_grows =
          (static_cast<double>(*view.backlog_records) - static_cast<double>(*backlog_begin_)) /
          seconds;
    }
  }
  window_begin_ = view.now;
  records_begin_ = view.records_trained;
  backlog_begin_ = view.backlog_records;
  return window;
}

void WorkerCountPolicy::Remember(const Window& window, const Workers& workers, TimePoint now) {
  for (auto at = measured_.begin(); at != measured_.end();) {
    std::deque<Measurement>& there = at->second;
    while (!there.empty() && now - there.front().at >= options_.measurement_age_max) {
      there.pop_front();
    }
    at = there.empty() ? measured_.erase(at) : std::next(at);
  }
  const bool keeps_up = KeepsUp(window, workers);
  kept_up_ = keeps_up ? kept_up_ + 1 : 0;
  if (keeps_up || window.rate <= 0) return;
  std::deque<Measurement>& here = measured_[workers.running];
  here.push_back({now, window.rate});
  if (here.size() > options_.measurements_max) here.pop_front();
}

bool WorkerCountPolicy::KeepsUp(const Window& window, const Workers& workers) const {
  return window.backlog_grows.has_value() && !FallsBehind(window) &&
         workers.waits >= options_.keeps_up;
}

bool WorkerCountPolicy::FallsBehind(const Window& window) const {
  return window.backlog_grows.has_value() &&
         *window.backlog_grows > options_.behind_min * window.rate;
}

std::map<uint32_t, double> WorkerCountPolicy::Rates() const {
  std::map<uint32_t, double> rates;
  for (const auto& [count, measured] : measured_) {
    std::vector<double> values;
    for (const Measurement& measurement : measured) values.push_back(measurement.rate);
    rates[count] = Median(std::move(values));
  }
  return rates;
}

std::optional<Proposal> WorkerCountPolicy::Propose(const JobView& view, const Workers& workers,
                                                   const Window& window) const {
  const uint32_t n = workers.running;
  const bool keeps_up = kept_up_ > 0;
  const auto here = measured_.find(n);
  const size_t known = keeps_up ? kept_up_ : here == measured_.end() ? 0 : here->second.size();
  if (known < options_.measurements_min) return std::nullopt;
  // A topic will get more records than those that are known now.
  if (!view.backlog_records.has_value() && view.records_left > 0) {
    const double remaining_s = static_cast<double>(view.records_left) / Rates().at(n);
    const std::chrono::duration<double> least = options_.remaining_min;
    if (remaining_s < least.count()) return std::nullopt;
  }
  // If all workers wait, their number is not the reason.
  if (workers.waiting > 0 && workers.waiting < n && n > view.workers_min) {
    const uint32_t surplus =
        std::min({workers.waiting, options_.step_max, n - std::max(view.workers_min, 1u)});
    return Change(
        workers, n - surplus, window,
        fmt::format("{} of {} workers do nothing but wait for shards", workers.waiting, n));
  }
  if (keeps_up) return ProposeFewer(view, workers, window);
  if (measured_.size() >= 2) return FollowModel(view, workers, window);
  if (Most(view, workers) <= n) return std::nullopt;
  return Change(
      workers, n + 1, window,
      fmt::format("in the last {} minutes, the rate was measured with {} only, and there are "
                  "spare cores: one more worker is tried",
                  std::chrono::floor<std::chrono::minutes>(options_.measurement_age_max).count(),
                  CountText(n, "worker")));
}

std::optional<Proposal> WorkerCountPolicy::ProposeFewer(const JobView& view, const Workers& workers,
                                                        const Window& window) const {
  const uint32_t n = workers.running;
  const auto needed = static_cast<uint32_t>(std::ceil(n * (1 - workers.waits) / options_.busy));
  const uint32_t least = std::max({needed, view.workers_min, 1u});
  if (least >= n) return std::nullopt;
  return Change(workers, n - std::min(n - least, options_.step_max), window,
                fmt::format("{} workers wait for data {} of their time, and no backlog grows", n,
                            Percent(workers.waits)));
}

uint32_t WorkerCountPolicy::Most(const JobView& view, const Workers& workers) const {
  const uint32_t n = workers.running;
  // If all workers wait, further ones would wait, too.
  if (workers.waiting == n || workers.served == n) return n;
  if (places_.missing() > 0) return n;
  if (!workers.spare.has_value()) return view.workers_max;
  if (!workers.cpus.has_value()) return n;
  const double each = options_.spare_cpus * *workers.cpus;
  const double more = each > 0 ? std::max(*workers.spare, 0.0) / each : view.workers_max;
  return std::min(view.workers_max, n + static_cast<uint32_t>(std::min(more, 1e6)));
}

std::optional<Proposal> WorkerCountPolicy::FollowModel(const JobView& view, const Workers& workers,
                                                       const Window& window) const {
  const uint32_t n = workers.running;
  const std::map<uint32_t, double> rates = Rates();
  const absl::StatusOr<ThroughputModel> model = ThroughputModel::Fit(rates);
  if (!model.ok() || model->relative_error() > options_.fit_error_max) return std::nullopt;
  const double average = model->Rate(n) / n;
  const auto gain = [&](uint32_t from) {
    return (model->Rate(from + 1) - model->Rate(from)) / average;
  };
  const double add_min =
      FallsBehind(window) ? (options_.add_min + options_.remove_max) / 2 : options_.add_min;
  const uint32_t most = std::min(Most(view, workers), n + options_.step_max);
  uint32_t to = n;
  while (to < most && gain(to) >= add_min) ++to;
  // The number goes down only to one that was measured, because a model of larger numbers says
  // little about smaller ones.
  while (to <= n && to > view.workers_min && to + options_.step_max > n && rates.contains(to - 1) &&
         gain(to - 1) < options_.remove_max) {
    --to;
  }
  if (to == n) return std::nullopt;
  Proposal change =
      Change(workers, to, window,
             to > n ? fmt::format("another worker would add {} of what a worker achieves now",
                                  Percent(gain(n)))
                    : fmt::format("the last worker adds {} of what a worker achieves on average",
                                  Percent(gain(n - 1))));
  change.evidence.push_back({"predicted rate", model->Rate(to), "records/s"});
  change.evidence.push_back({"error of the fit", model->relative_error(), "ratio"});
  change.evidence.push_back(
      {"worker counts measured", static_cast<double>(rates.size()), "counts"});
  return change;
}

Proposal WorkerCountPolicy::Change(const Workers& workers, uint32_t to, const Window& window,
                                   std::string because) const {
  Proposal change{.policy = name(),
                  .action = Action::kScale,
                  .target = "workers",
                  .before = workers.wanted,
                  .after = to,
                  .evidence = {{"rate", window.rate, "records/s", options_.window},
                               {"workers that only wait", static_cast<double>(workers.waiting),
                                "workers", options_.window}},
                  .because = fmt::format("{}: {} workers become {}", because, workers.wanted, to)};
  const auto add = [&](const char* what, const std::optional<double>& value, const char* unit) {
    if (value.has_value()) change.evidence.push_back({what, *value, unit, options_.window});
  };
  add("CPU of a worker", workers.cpus, "cores");
  add("CPU to spare", workers.spare, "cores");
  add("backlog grows", window.backlog_grows, "records/s");
  return change;
}

}  // namespace muster::scaler
