#include "job/job_spec.h"

#include <fmt/format.h>

#include <utility>

namespace muster {

std::string GroupOf(const JobSpec& spec) {
  return "muster." + spec.name;
}

std::vector<std::pair<std::string, std::string>> FixedFields(const JobSpec& spec) {
  std::vector<std::pair<std::string, std::string>> fields;
  fields.emplace_back("spec.seed", fmt::format("{}", spec.seed));
  fields.emplace_back("spec.partitions", fmt::format("{}", spec.partitions));
  std::string names;
  for (const DatasetSpec& dataset : spec.datasets) {
    names += (names.empty() ? "" : ", ") + dataset.name;
  }
  fields.emplace_back("spec.datasets", names);
  for (const DatasetSpec& dataset : spec.datasets) {
    const std::string prefix = fmt::format("spec.datasets[{}].", dataset.name);
    fields.emplace_back(prefix + "mode",
                        dataset.mode == DatasetMode::kTrain ? "train" : "evaluate");
    fields.emplace_back(prefix + "header", fmt::format("{}", HasHeader(dataset.source)));
    fields.emplace_back(prefix + "minibatchSize", fmt::format("{}", dataset.minibatch_size));
    fields.emplace_back(prefix + "minibatchesPerShard",
                        fmt::format("{}", dataset.minibatches_per_shard));
    fields.emplace_back(prefix + "shuffle", fmt::format("{}", dataset.shuffle));
    for (auto& [name, value] : FixedFields(dataset.source)) {
      fields.emplace_back(prefix + name, std::move(value));
    }
  }
  return fields;
}

}  // namespace muster
