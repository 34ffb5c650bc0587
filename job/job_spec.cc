#include "job/job_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster {

std::string GroupOf(const JobSpec& spec) {
  return "muster." + spec.name;
}

uint32_t GroupMembersMax(const JobSpec& spec) {
  return spec.group.members_max.value_or(
      spec.worker.replicas_max.value_or(std::max(spec.worker.replicas, 1u)));
}

std::vector<std::pair<std::string, std::string>> FixedFields(const JobSpec& spec) {
  std::vector<std::pair<std::string, std::string>> fields;
  fields.emplace_back("spec.seed", fmt::format("{}", spec.seed));
  if (HasGroup(spec)) {
    fields.emplace_back("spec.group.globalBatch", fmt::format("{}", *spec.group.global_batch));
  }
  fields.emplace_back("spec.partitions", fmt::format("{}", spec.partitions));
  std::string names;
  for (const DatasetSpec& dataset : spec.datasets) {
    names += (names.empty() ? "" : ", ") + dataset.name;
  }
  fields.emplace_back("spec.datasets", names);
  for (const DatasetSpec& dataset : spec.datasets) {
    const std::string prefix = fmt::format("spec.datasets[{}].", dataset.name);
    fields.emplace_back(prefix + "mode", ToString(dataset.mode));
    fields.emplace_back(prefix + "header", fmt::format("{}", HasHeader(dataset.source)));
    fields.emplace_back(prefix + "minibatchSize", fmt::format("{}", dataset.minibatch_size));
    fields.emplace_back(prefix + "minibatchesPerShard",
                        fmt::format("{}", dataset.minibatches_per_shard));
    fields.emplace_back(prefix + "shuffle", ToString(dataset.shuffle));
    if (dataset.weight != 0) {
      fields.emplace_back(prefix + "weight", fmt::format("{:g}", dataset.weight));
    }
    for (auto& [name, value] : FixedFields(dataset.source)) {
      fields.emplace_back(prefix + name, std::move(value));
    }
  }
  return fields;
}

}  // namespace muster
