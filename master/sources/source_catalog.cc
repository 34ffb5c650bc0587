#include "master/sources/source_catalog.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/status.h"
#include "master/sources/kinds.h"
#include "sharding/shard_order.h"

namespace muster {
namespace {

using Sources = std::vector<std::unique_ptr<DatasetSource>>;

absl::Status Named(const JobSpec& job, size_t dataset, const absl::Status& status) {
  if (status.ok()) return status;
  return Annotate(status, fmt::format("dataset '{}'", job.datasets[dataset].name));
}

Sources MakeSources(const JobSpec& job) {
  Sources sources;
  for (uint32_t i = 0; i < job.datasets.size(); ++i) {
    sources.push_back(MakeSource(job, DatasetId(i)));
  }
  return sources;
}

/// The sources of a job that Open may keep.
absl::StatusOr<Sources> LookAtSources(const JobSpec& job, const LookOptions& look) {
  Sources sources = MakeSources(job);
  for (size_t i = 0; i < sources.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(Named(job, i, sources[i]->CheckSettings()));
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(Named(job, i, sources[i]->Look(look)));
  }
  return sources;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SourceCatalog>> SourceCatalog::Open(const JobSpec& job,
                                                                   const ProgressFn& progress,
                                                                   std::function<void()> alive) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(job.state_directory + "/index"));
  MUSTER_ASSIGN_OR_RETURN(Sources sources,
                          LookAtSources(job, {progress, std::move(alive), /*keeps_parts=*/true}));
  for (size_t i = 0; i < sources.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(Named(job, i, sources[i]->Keep()));
  }
  return std::make_unique<SourceCatalog>(job, std::move(sources));
}

absl::StatusOr<std::unique_ptr<SourceCatalog>> SourceCatalog::OpenKept(const JobSpec& job) {
  Sources sources = MakeSources(job);
  for (size_t i = 0; i < sources.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(Named(job, i, sources[i]->OpenKept()));
  }
  return std::make_unique<SourceCatalog>(job, std::move(sources));
}

absl::Status SourceCatalog::Check(const JobSpec& job, const ProgressFn& progress) {
  return LookAtSources(job, {.progress = progress}).status();
}

absl::StatusOr<std::vector<SourcePreview>> SourceCatalog::Preview(const JobSpec& job) {
  std::vector<SourcePreview> previews;
  for (const std::unique_ptr<DatasetSource>& source : MakeSources(job)) {
    MUSTER_ASSIGN_OR_RETURN(SourcePreview preview, source->Preview());
    previews.push_back(std::move(preview));
  }
  return previews;
}

SourceCatalog::SourceCatalog(const JobSpec& job, Sources sources) : seed_(job.seed) {
  MUSTER_CHECK(sources.size() == job.datasets.size());
  std::vector<uint64_t> minibatches;
  std::vector<double> weights;
  for (size_t i = 0; i < sources.size(); ++i) {
    datasets_.push_back({.spec = job.datasets[i], .source = std::move(sources[i])});
    Dataset& dataset = datasets_.back();
    if (!IsMixed(dataset)) continue;
    const std::shared_ptr<const ShardLayout> layout = dataset.source->layout();
    dataset.in_mix = mix_.size();
    mix_.push_back({.shards = layout->shard_count(), .minibatches = layout->minibatch_count()});
    minibatches.push_back(layout->minibatch_count());
    weights.push_back(dataset.spec.weight);
    epoch_steps_ += layout->minibatch_count();
  }
  const std::vector<double> paces = PacesOf(minibatches, weights);
  for (size_t i = 0; i < mix_.size(); ++i) mix_[i].pace = paces[i];
}

bool SourceCatalog::IsMixed(const Dataset& dataset) {
  return dataset.spec.mode == DatasetMode::kTrain && !dataset.source->Growth().has_value();
}

uint64_t SourceCatalog::StepsBefore(const Dataset& dataset, const ShardId& shard) const {
  const ShardLayout& layout = *dataset.source->layout();
  const uint64_t of_dataset = layout.At(shard.epoch, shard.index).first_minibatch;
  if (dataset.spec.mode != DatasetMode::kTrain) {
    return shard.epoch.value() * layout.minibatch_count() + of_dataset;
  }
  if (mix_.size() == 1) return shard.epoch.value() * epoch_steps_ + of_dataset;
  return shard.epoch.value() * epoch_steps_ +
         MinibatchesBefore(mix_, dataset.in_mix, shard.index.value());
}

const SourceCatalog::Dataset& SourceCatalog::At(DatasetId dataset) const {
  MUSTER_CHECK(dataset.value() < datasets_.size());
  return datasets_[dataset.value()];
}

const ShardLayout& SourceCatalog::layout(DatasetId dataset) const {
  return *At(dataset).source->layout();
}

std::vector<DatasetPlan> SourceCatalog::Plans() const {
  std::vector<DatasetPlan> plans;
  for (uint32_t i = 0; i < datasets_.size(); ++i) {
    const DatasetSpec& spec = datasets_[i].spec;
    const std::shared_ptr<const ShardLayout> layout = datasets_[i].source->layout();
    DatasetPlan& plan = plans.emplace_back();
    plan.name = spec.name;
    plan.mode = spec.mode;
    plan.epochs = spec.epochs;
    plan.shards = layout->shard_count();
    plan.records = layout->record_count();
    plan.minibatch_size = spec.minibatch_size;
    plan.size_of = [layout](EpochIndex epoch, ShardIndex index) {
      const ShardLayout::Shard shard = layout->At(epoch, index);
      return ShardSize{shard.record_count, shard.minibatch_count};
    };
    if (IsMixed(datasets_[i])) plan.pace = mix_[datasets_[i].in_mix].pace;
    plan.stream = datasets_[i].source->Growth();
  }
  return plans;
}

void SourceCatalog::Describe(const ShardId& shard, ShardWork* work) const {
  const Dataset& dataset = At(shard.dataset);
  const DatasetSpec& spec = dataset.spec;
  const std::shared_ptr<const ShardLayout> layout = dataset.source->layout();
  if (layout->shard_count() == 0) return;
  const ShardLayout::Shard size = layout->At(shard.epoch, shard.index);
  work->dataset_name = spec.name;
  work->mode = spec.mode;
  work->output = spec.output;
  work->record_count = size.record_count;
  work->minibatch_size = spec.minibatch_size;
  work->minibatch_count = size.minibatch_count;
  work->shuffle_seed = spec.shuffle == Shuffle::kNone ? 0 : RecordSeed(seed_, shard);
  work->first_step = StepsBefore(dataset, shard);
  dataset.source->Locate(layout->RunsOf(shard.epoch, shard.index), work);
}

ShardWork SourceCatalog::WorkOf(const ShardId& shard) const {
  ShardWork work;
  Describe(shard, &work);
  return work;
}

void SourceCatalog::Introduce(HelloResponse* hello) const {
  for (const Dataset& dataset : datasets_) dataset.source->Introduce(hello);
}

absl::StatusOr<std::unique_ptr<SourceFollower>> SourceCatalog::Follow(DatasetId dataset,
                                                                      FollowOptions options) const {
  return At(dataset).source->Follow(std::move(options));
}

std::vector<std::pair<std::string, std::string>> SourceCatalog::Fingerprint() const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const Dataset& dataset : datasets_) {
    result.emplace_back(dataset.spec.name, dataset.source->Fingerprint());
  }
  return result;
}

}  // namespace muster
