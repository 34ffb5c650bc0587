#include "cli/metrics/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "cli/show/fit.h"
#include "cli/show/progress.h"
#include "cli/show/secret_name.h"
#include "proto/fields/json.h"

namespace muster::metrics {
namespace {

constexpr std::string_view kEnvPrefix = "spec.replicaSpecs.worker.env.";

constexpr size_t kColumns = 80;
constexpr size_t kJobsPerTable = 3;
constexpr size_t kSummariesKept = 20;

/// A, B, ..., Z, 27, 28, ...
std::string LetterOf(size_t index) {
  return index < 26 ? std::string(1, static_cast<char>('A' + index)) : std::to_string(index + 1);
}

/// A metric of a dataset, with its value in each job that has one.
struct MetricRow {
  std::string dataset;
  std::string metric;
  Better better = Better::kUnknown;
  std::vector<const MetricTrend*> trends;
};

std::vector<MetricRow> MetricRowsOf(const std::vector<ComparedJob>& jobs) {
  std::vector<MetricRow> rows;
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (const MetricTrend& trend : jobs[i].status.metric_trends) {
      auto row = std::ranges::find_if(rows, [&trend](const MetricRow& known) {
        return known.dataset == trend.dataset && known.metric == trend.metric;
      });
      if (row == rows.end()) {
        rows.push_back({.dataset = trend.dataset,
                        .metric = trend.metric,
                        .better = BetterOf(trend.metric),
                        .trends = std::vector<const MetricTrend*>(jobs.size(), nullptr)});
        row = rows.end() - 1;
      }
      row->trends[i] = &trend;
    }
  }
  return rows;
}

/// A line of the table.
struct FigureRow {
  std::string label;
  std::vector<std::string> cells;
  std::string change;
};

using Values = std::vector<std::optional<double>>;

/// "0.8153", "+0.0021".
std::string NumberText(double value) {
  return fmt::format("{:.5g}", value);
}
std::string ChangeText(const Values& values) {
  if (values.size() != 2 || !values[0] || !values[1]) return "";
  const double change = *values[1] - *values[0];
  if (change == 0) return "0";
  return std::abs(change) < 1000 ? fmt::format("{:+.4g}", change) : fmt::format("{:+.0f}", change);
}

/// Says for each value whether it is the best one, or equal to it. None is unless the values
/// differ.
std::vector<bool> BestOf(const Values& values, Better better) {
  std::vector<bool> best(values.size(), false);
  std::vector<double> known;
  for (const auto& value : values) {
    if (value && std::isfinite(*value)) known.push_back(*value);
  }
  if (better == Better::kUnknown || known.size() < 2) return best;
  const auto [least, most] = std::ranges::minmax(known);
  if (least == most) return best;
  const double wanted = better == Better::kHigher ? most : least;
  for (size_t i = 0; i < values.size(); ++i) best[i] = values[i] && *values[i] == wanted;
  return best;
}

/// `text(i)` returns the cell of job i. It is called for jobs that have a value.
FigureRow RowOf(std::string label, const Values& values, Better better,
                const std::function<std::string(size_t)>& text) {
  FigureRow row{.label = std::move(label), .cells = {}, .change = ChangeText(values)};
  const std::vector<bool> best = BestOf(values, better);
  for (size_t i = 0; i < values.size(); ++i) {
    row.cells.push_back(values[i] ? text(i) + (best[i] ? " *" : "") : "-");
  }
  return row;
}

void AddMetricRows(const std::vector<ComparedJob>& jobs, std::vector<FigureRow>* rows) {
  for (const MetricRow& metric : MetricRowsOf(jobs)) {
    Values newest;
    Values best;
    for (const MetricTrend* trend : metric.trends) {
      const bool known = trend != nullptr && std::isfinite(trend->latest);
      newest.push_back(known ? std::optional(trend->latest) : std::nullopt);
      best.push_back(trend != nullptr ? trend->best : std::nullopt);
    }
    const std::string name = metric.dataset + " " + Printable(metric.metric);
    rows->push_back(RowOf(name, newest, metric.better, [&](size_t i) {
      return fmt::format("{}{}", NumberText(*newest[i]),
                         metric.trends[i]->epoch_over ? "" : " so far");
    }));
    if (std::ranges::none_of(best, [](const auto& value) { return value.has_value(); })) continue;
    rows->push_back(RowOf("  best (its epoch)", best, metric.better, [&](size_t i) {
      return fmt::format("{} ({})", NumberText(*best[i]), metric.trends[i]->best_epoch + 1);
    }));
  }
}

uint64_t NodesOf(const ComparedJob& job, std::string_view role) {
  return static_cast<uint64_t>(
      std::ranges::count(job.status.nodes, std::string(role), &NodeStatus::role));
}

std::string SecondsText(double seconds) {
  return DurationText(std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3)));
}

std::vector<FigureRow> FigureRowsOf(const std::vector<ComparedJob>& jobs) {
  std::vector<FigureRow> rows;
  const auto words = [&](std::string label, const auto& word) {
    FigureRow row{.label = std::move(label), .cells = {}, .change = ""};
    for (const ComparedJob& job : jobs) row.cells.emplace_back(word(job));
    rows.push_back(std::move(row));
  };
  const auto figure = [&](const std::string& label, const auto& value, const auto& text) {
    Values values;
    for (const ComparedJob& job : jobs) values.push_back(value(job));
    rows.push_back(
        RowOf(label, values, Better::kUnknown, [&](size_t i) { return text(*values[i]); }));
    if (label.find("time") != std::string::npos) rows.back().change.clear();
  };
  const auto count = [](double value) { return CountText(static_cast<uint64_t>(value)); };
  words("state", [](const ComparedJob& job) { return std::string(ToString(job.status.state)); });
  AddMetricRows(jobs, &rows);
  figure(
      "records committed",
      [](const ComparedJob& job) -> std::optional<double> {
        return static_cast<double>(job.status.progress.records_committed);
      },
      count);
  figure("records/s", RecordsPerSecondOf, count);
  figure(
      "running time",
      [](const ComparedJob& job) -> std::optional<double> {
        if (job.status.running_ms == 0) return std::nullopt;
        return static_cast<double>(job.status.running_ms) / 1e3;
      },
      SecondsText);
  figure("wall time", WallSecondsOf, SecondsText);
  words("workers", [](const ComparedJob& job) { return CountText(NodesOf(job, "worker")); });
  words("servers", [](const ComparedJob& job) { return CountText(NodesOf(job, "ps")); });
  words("runs", [](const ComparedJob& job) {
    const bool all = !job.runs.empty() && job.runs.size() < kSummariesKept;
    return all ? CountText(job.runs.size()) : std::string(job.runs.empty() ? "-" : "20 or more");
  });
  return rows;
}

/// The table of the jobs in [first, end).
std::string TableText(const std::vector<FigureRow>& rows, size_t first, size_t end) {
  const bool change = first == 0 && end == 2 && rows.front().cells.size() == 2;
  std::vector<Column> columns = {{"", 0}};
  for (size_t i = first; i < end; ++i) columns.push_back({LetterOf(i), 0});
  if (change) columns.push_back({"B - A", 1});
  std::vector<std::vector<std::string>> cells;
  for (const FigureRow& row : rows) {
    std::vector<std::string>& line = cells.emplace_back();
    // A long name of a metric must not push the values out of the table.
    line.push_back(Excerpt(row.label, 24));
    for (size_t i = first; i < end; ++i) line.push_back(row.cells[i]);
    if (change) line.push_back(row.change);
  }
  std::string text;
  for (const std::string& line : FitTable(columns, cells, kColumns)) {
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string DifferencesText(const std::vector<ComparedJob>& jobs) {
  const std::vector<Difference> differences = DifferencesOf(jobs);
  if (differences.empty()) return "";
  std::string text = "\nsettings that differ:\n";
  for (const Difference& difference : differences) {
    text += difference.field + "\n";
    for (size_t i = 0; i < difference.values.size(); ++i) {
      const auto& value = difference.values[i];
      text += fmt::format("  {}  {}\n", LetterOf(i), value ? Printable(*value) : "-");
    }
  }
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> SettingsOf(const JobSpec& spec) {
  auto settings = FixedFields(spec);
  const auto add = [&settings](std::string field, const auto& value) {
    settings.emplace_back(std::move(field), fmt::format("{}", value));
  };
  for (const DatasetSpec& dataset : spec.datasets) {
    add(fmt::format("spec.datasets[{}].epochs", dataset.name), dataset.epochs);
  }
  add("spec.replicaSpecs.ps.replicas", spec.ps.replicas);
  add("spec.replicaSpecs.worker.replicas", spec.worker.replicas);
  add("spec.replicaSpecs.worker.command", fmt::format("{}", fmt::join(spec.worker.command, " ")));
  for (const auto& [name, value] : spec.worker.env) {
    add(std::string(kEnvPrefix) + name, value);
  }
  add("spec.training.unacknowledgedMinibatchesMax", spec.training.unacknowledged_minibatches_max);
  add("spec.training.wireEncoding", spec.training.wire_encoding);
  return settings;
}

std::optional<double> WallSecondsOf(const ComparedJob& job) {
  if (job.runs.empty() || job.runs.size() >= kSummariesKept) return std::nullopt;
  return static_cast<double>(job.runs.back().ended_wall_us - job.runs.front().began_wall_us) / 1e6;
}

std::optional<double> RecordsPerSecondOf(const ComparedJob& job) {
  if (job.status.running_ms < 1'000) return std::nullopt;
  return static_cast<double>(job.status.progress.records_committed) * 1e3 /
         static_cast<double>(job.status.running_ms);
}

std::vector<Difference> DifferencesOf(const std::vector<ComparedJob>& jobs) {
  std::vector<Difference> all;
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (const auto& [field, value] : jobs[i].settings) {
      auto known = std::ranges::find(all, field, &Difference::field);
      if (known == all.end()) {
        all.push_back({field, std::vector<std::optional<std::string>>(jobs.size())});
        known = all.end() - 1;
      }
      known->values[i] = value;
    }
  }
  // If a job has no copy of its job file, its settings are unknown, so it has no part in
  // differences.
  std::erase_if(all, [&jobs](const Difference& difference) {
    std::optional<size_t> first;
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].settings.empty()) continue;
      if (!first) first = i;
      if (difference.values[i] != difference.values[*first]) return false;
    }
    return true;
  });
  // It is worth knowing that secrets differ. But the secrets themselves must not appear on a
  // terminal or in a file.
  for (Difference& difference : all) {
    std::string_view name = difference.field;
    if (!name.starts_with(kEnvPrefix)) continue;
    name.remove_prefix(kEnvPrefix.size());
    if (!LooksSecret(name)) continue;
    for (auto& value : difference.values) {
      if (value) *value = kHiddenValue;
    }
  }
  return all;
}

std::string ComparisonText(const std::vector<ComparedJob>& jobs) {
  std::string text;
  for (size_t i = 0; i < jobs.size(); ++i) {
    text += fmt::format("{}  {}: {}\n", LetterOf(i), Printable(jobs[i].given),
                        Printable(jobs[i].status.name));
  }
  const std::vector<FigureRow> rows = FigureRowsOf(jobs);
  for (size_t first = 0; first < jobs.size(); first += kJobsPerTable) {
    text += "\n" + TableText(rows, first, std::min(first + kJobsPerTable, jobs.size()));
  }
  return text + DifferencesText(jobs);
}

nlohmann::json ComparisonToJson(const std::vector<ComparedJob>& jobs) {
  const auto known = [](const auto& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  };
  nlohmann::json list = nlohmann::json::array();
  for (const ComparedJob& job : jobs) {
    list.push_back({{"given", ValidUtf8(job.given)},
                    {"state_directory", ValidUtf8(job.state_directory)},
                    {"name", job.status.name},
                    {"state", ToString(job.status.state)},
                    {"metric_trends", JsonFields::Value(job.status.metric_trends)},
                    {"records_committed", job.status.progress.records_committed},
                    {"records_per_second", known(RecordsPerSecondOf(job))},
                    {"running_ms", job.status.running_ms},
                    {"wall_seconds", known(WallSecondsOf(job))},
                    {"workers", NodesOf(job, "worker")},
                    {"servers", NodesOf(job, "ps")},
                    {"runs", job.runs.size()}});
  }
  nlohmann::json differences = nlohmann::json::array();
  for (const Difference& difference : DifferencesOf(jobs)) {
    nlohmann::json values = nlohmann::json::array();
    for (const auto& value : difference.values) {
      values.push_back(value ? nlohmann::json(ValidUtf8(*value)) : nlohmann::json(nullptr));
    }
    differences.push_back({{"field", difference.field}, {"values", std::move(values)}});
  }
  return {{"jobs", std::move(list)}, {"differences", std::move(differences)}};
}

}  // namespace muster::metrics
