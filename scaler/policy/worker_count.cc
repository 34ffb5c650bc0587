#include "scaler/policy/worker_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "scaler/policy/window.h"

namespace muster::scaler {

std::vector<Proposal> WorkerCountPolicy::Step(const JobView& view) {
  if (view.workers_min >= view.workers_max) return {};
  const Workers workers = Look(view);
  const bool measured = Measure(view, workers);
  if (!steady_since_.has_value() || workers.running != workers.wanted || workers.wanted == 0) {
    return {};
  }
  const auto here = measured_.find(workers.running);
  if (here == measured_.end() || here->second.size() < options_.measurements_min) return {};
  // Between two measurements nothing new is known; the last answer would only be said again.
  if (!measured) return {};
  std::optional<Proposal> proposal = Propose(view, workers);
  if (!proposal.has_value()) return {};
  return {*std::move(proposal)};
}

WorkerCountPolicy::Workers WorkerCountPolicy::Look(const JobView& view) const {
  Workers workers;
  double cpus = 0;
  double all = 0;
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
    cpus += span->cpus();
    const auto waited = span->end->worker.waiting_shards - span->begin->worker.waiting_shards;
    workers.waiting += span->Rate(waited) >= options_.only_waits ? 1 : 0;
  }
  if (workers.running > 0) workers.cpus = cpus / workers.running;
  workers.spare = view.machine.cpus - all;
  return workers;
}

bool WorkerCountPolicy::Measure(const JobView& view, const Workers& workers) {
  if (view.activity != Activity::kTraining || workers.lives != lives_) {
    lives_ = workers.lives;
    steady_since_.reset();
    window_begin_.reset();
    if (view.activity == Activity::kTraining) steady_since_ = view.now;
    return false;
  }
  if (!steady_since_.has_value()) steady_since_ = view.now;
  if (view.now - *steady_since_ < options_.settle) return false;
  // A total that went back is of another master; such a window says nothing.
  if (!window_begin_.has_value() || view.records_trained < records_begin_) {
    window_begin_ = view.now;
    records_begin_ = view.records_trained;
    return false;
  }
  if (view.now - *window_begin_ < options_.window) return false;
  const double seconds = std::chrono::duration<double>(view.now - *window_begin_).count();
  const double rate = static_cast<double>(view.records_trained - records_begin_) / seconds;
  window_begin_ = view.now;
  records_begin_ = view.records_trained;
  if (rate <= 0) return false;
  std::deque<double>& here = measured_[workers.running];
  here.push_back(rate);
  if (here.size() > options_.measurements_max) here.pop_front();
  return true;
}

std::map<uint32_t, double> WorkerCountPolicy::Rates() const {
  std::map<uint32_t, double> rates;
  for (const auto& [count, measured] : measured_) {
    rates[count] = Median({measured.begin(), measured.end()});
  }
  return rates;
}

std::optional<Proposal> WorkerCountPolicy::Propose(const JobView& view,
                                                   const Workers& workers) const {
  const uint32_t n = workers.running;
  const std::map<uint32_t, double> rates = Rates();
  const double rate = rates.at(n);
  const double remaining_s = static_cast<double>(view.records_left) / rate;
  const bool ends_soon =
      view.records_left > 0 &&
      remaining_s < std::chrono::duration<double>(options_.remaining_min).count();
  if (ends_soon) return std::nullopt;
  // Where all of them wait, it is not for being too many.
  if (workers.waiting > 0 && workers.waiting < n && n > view.workers_min) {
    const uint32_t surplus =
        std::min({workers.waiting, options_.step_max, n - std::max(view.workers_min, 1u)});
    return Change(workers, n - surplus, rate,
                  fmt::format("{} of {} workers only wait for shards", workers.waiting, n));
  }
  if (rates.size() < 2) {
    const bool room = view.machine.cpus <= 0 || workers.spare >= options_.spare_cpus * workers.cpus;
    if (n >= view.workers_max || !room) return std::nullopt;
    return Change(
        workers, n + 1, rate,
        fmt::format("only {} workers were ever measured, and the machine has {:.1f} cores "
                    "to spare: one more is tried",
                    n, workers.spare));
  }
  const absl::StatusOr<ThroughputModel> model = ThroughputModel::Fit(rates);
  if (!model.ok() || model->relative_error() > options_.fit_error_max) return std::nullopt;
  const double average = model->Rate(n) / n;
  const auto gain = [&](uint32_t from) {
    return (model->Rate(from + 1) - model->Rate(from)) / average;
  };
  uint32_t to = n;
  while (to < view.workers_max && to < n + options_.step_max && gain(to) >= options_.add_min) ++to;
  // Down only to what was measured: a model of more says little about fewer.
  while (to <= n && to > view.workers_min && to + options_.step_max > n && rates.contains(to - 1) &&
         gain(to - 1) < options_.remove_max) {
    --to;
  }
  if (to == n) return std::nullopt;
  Proposal change = Change(
      workers, to, rate,
      to > n ? fmt::format("another worker brings {:.0f} % of what one brings now", 100 * gain(n))
             : fmt::format("the last worker brings {:.0f} % of what one brings on the average",
                           100 * gain(n - 1)));
  change.evidence.push_back({"predicted rate", model->Rate(to), "records/s"});
  change.evidence.push_back({"error of the fit", model->relative_error(), "ratio"});
  change.evidence.push_back(
      {"worker counts measured", static_cast<double>(rates.size()), "counts"});
  return change;
}

Proposal WorkerCountPolicy::Change(const Workers& workers, uint32_t to, double rate,
                                   std::string because) const {
  return {.policy = name(),
          .action = Action::kSetWorkers,
          .target = "workers",
          .before = workers.wanted,
          .after = to,
          .evidence = {{"rate", rate, "records/s", options_.window},
                       {"CPU of a worker", workers.cpus, "cores", options_.window},
                       {"CPU to spare", workers.spare, "cores", options_.window},
                       {"workers that only wait", static_cast<double>(workers.waiting), "workers",
                        options_.window}},
          .because = fmt::format("{}: {} workers become {}", because, workers.wanted, to)};
}

}  // namespace muster::scaler
