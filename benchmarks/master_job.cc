#include "benchmarks/master_job.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/check.h"
#include "job/job_spec.h"
#include "master/journal/rocksdb_journal.h"

namespace muster {
namespace {

class BenchSource final : public DatasetSource {
 public:
  explicit BenchSource(uint64_t shards)
      : layout_(std::make_shared<const ShardLayout>(
            std::vector<ShardLayout::Source>{{.records = shards * kMasterJobRecords}},
            ShardLayout::Options{.minibatch_size = 256, .minibatches_per_shard = 16})) {}

  absl::Status CheckSettings() const override { return absl::OkStatus(); }
  absl::StatusOr<SourcePreview> Preview() const override { return SourcePreview(); }
  absl::Status Look(const LookOptions&) override { return absl::OkStatus(); }
  absl::Status Keep() override { return absl::OkStatus(); }
  absl::Status OpenKept() override { return absl::OkStatus(); }
  std::shared_ptr<const ShardLayout> layout() const override { return layout_; }
  std::string Fingerprint() const override { return "bench"; }
  void Locate(std::span<const RecordRun> runs, ShardWork* work) const override {
    work->files = {{.path = "/data/train-00000.csv"}};
    for (const RecordRun& run : runs) {
      work->runs.push_back({.first_record = run.first_record, .record_count = run.record_count});
    }
  }

 private:
  const std::shared_ptr<const ShardLayout> layout_;
};

}  // namespace

CoreOptions MasterJobOptions(uint64_t shards) {
  CoreOptions options;
  DatasetPlan plan{"train", DatasetMode::kTrain, 1, shards, shards * kMasterJobRecords, 256,
                   nullptr};
  plan.size_of = [](EpochIndex, ShardIndex) {
    return ShardSize{kMasterJobRecords, kMasterJobRecords / 256};
  };
  options.datasets = {plan};
  options.partitions = 256;
  options.run_id = "bench";
  options.snapshot_interval = std::chrono::seconds(1);
  return options;
}

SourceCatalog MasterJobSources(uint64_t shards) {
  JobSpec job;
  job.datasets.resize(1);
  std::vector<std::unique_ptr<DatasetSource>> sources;
  sources.push_back(std::make_unique<BenchSource>(shards));
  return SourceCatalog(job, std::move(sources));
}

std::unique_ptr<Journal> OpenMasterJournal(const std::string& folder) {
  auto journal = OpenRocksdbJournal(folder + "/journal", {"bench", {}, {}, kMasterJobId});
  MUSTER_CHECK_MSG(journal.ok(), journal.status().ToString());
  return *std::move(journal);
}

}  // namespace muster
