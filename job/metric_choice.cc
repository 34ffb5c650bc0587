#include "job/metric_choice.h"

#include <fmt/format.h>

#include <vector>

namespace muster {

absl::StatusOr<MetricChoice> ChooseMetric(const JobSpec& job, const std::string& text) {
  std::vector<size_t> evaluated;
  for (size_t i = 0; i < job.datasets.size(); ++i) {
    const DatasetSpec& dataset = job.datasets[i];
    if (dataset.mode != DatasetMode::kEvaluate) continue;
    evaluated.push_back(i);
    const std::string prefix = dataset.name + "/";
    if (text.starts_with(prefix) && text.size() > prefix.size()) {
      return MetricChoice{i, text.substr(prefix.size())};
    }
  }
  if (evaluated.size() == 1) return MetricChoice{evaluated[0], text};
  return absl::InvalidArgumentError(
      evaluated.empty()
          ? fmt::format("there is no dataset of mode evaluate that could have the metric '{}'",
                        text)
          : fmt::format("'{}' does not say which of {} evaluate datasets is meant; write {}/METRIC",
                        text, evaluated.size(), job.datasets[evaluated[0]].name));
}

}  // namespace muster
