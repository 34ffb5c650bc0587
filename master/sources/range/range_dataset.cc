#include "master/sources/range/range_dataset.h"

#include <fmt/format.h>

#include <variant>
#include <vector>

#include "base/text.h"

namespace muster {

RangeDataset::RangeDataset(const JobSpec& job, DatasetId dataset)
    : dataset_(job.datasets[dataset.value()]),
      layout_(std::make_shared<const ShardLayout>(
          std::vector<ShardLayout::Source>{
              {.records = std::get<RangeSpec>(dataset_.source).records}},
          ShardLayout::Options{.seed = job.seed,
                               .dataset = dataset,
                               .minibatch_size = dataset_.minibatch_size,
                               .minibatches_per_shard = dataset_.minibatches_per_shard,
                               .shuffle = dataset_.shuffle})) {}

absl::StatusOr<SourcePreview> RangeDataset::Preview() const {
  SourcePreview preview = BeginPreview(dataset_);
  preview.what = fmt::format("{} in {}", CountText(layout_->record_count(), "record number"),
                             CountText(layout_->shard_count(), "shard"));
  preview.facts["records"] = layout_->record_count();
  preview.facts["shards"] = layout_->shard_count();
  return preview;
}

void RangeDataset::Locate(std::span<const RecordRun> runs, ShardWork* work) const {
  for (const RecordRun& run : runs) {
    work->runs.push_back({.first_record = run.first_record, .record_count = run.record_count});
  }
}

void RangeDataset::Introduce(HelloResponse* hello) const {
  hello->numbered.push_back({dataset_.name, layout_->record_count()});
}

}  // namespace muster
