#include "master/service/manifest_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/status.h"
#include "proto/fields/generated.h"

namespace muster {
namespace {

/// The epoch whose kept weights are asked for.
absl::StatusOr<EpochIndex> KeptEpochOf(const MasterCore& core,
                                       const v1::GetManifestRequest& request) {
  std::string kept;
  for (const auto& [epoch, manifests] : core.kept().epochs()) {
    kept += fmt::format("{}{}", kept.empty() ? "" : ", ", epoch.value() + 1);
  }
  const std::optional<EpochIndex> best = core.epoch_ends().best();
  if (request.best() && !best.has_value()) {
    return absl::NotFoundError(
        "no epoch is known to be the best: spec.training.keep.best names no metric, or no epoch "
        "has "
        "ended with it");
  }
  const EpochIndex epoch = request.best() ? *best : EpochIndex(request.epoch());
  if (core.kept().epochs().contains(epoch)) return epoch;
  return absl::NotFoundError(fmt::format("the weights after epoch {} are not kept; kept are {}",
                                         epoch.value() + 1, kept.empty() ? "none" : kept));
}

void FillGroup(const ManifestFacts& facts, v1::GroupManifest* to) {
  for (const GroupTensor& tensor : facts.model->tensors) {
    if (!tensor.summed) ToProto(tensor, to->add_tensors());
  }
  if (!facts.checkpoint.has_value()) return;
  ToProto(facts.checkpoint->label, to->mutable_label());
  for (const StateStripe& stripe : facts.checkpoint->stripes) ToProto(stripe, to->add_stripes());
}

}  // namespace

absl::StatusOr<ManifestFacts> KeptManifestOf(const MasterCore& core,
                                             const v1::GetManifestRequest& request) {
  if (!request.best() && !request.has_epoch()) return ManifestFactsOf(core);
  MUSTER_ASSIGN_OR_RETURN(const EpochIndex epoch, KeptEpochOf(core, request));
  ManifestFacts facts{{}, core.tables(), core.ledger().commit_seq(), core.state(), {}, {}};
  facts.partitions = core.kept().epochs().at(epoch);
  return facts;
}

ManifestFacts ManifestFactsOf(const MasterCore& core) {
  ManifestFacts facts{{}, core.tables(), core.ledger().commit_seq(), core.state(), {}, {}};
  if (core.group() != nullptr) {
    facts.model = core.group()->model();
    facts.checkpoint = core.group()->checkpoint();
  }
  facts.partitions.reserve(core.partitions().size());
  for (uint32_t i = 0; i < core.partitions().size(); ++i) {
    facts.partitions.push_back(core.partitions().manifest(PartitionId(i)));
  }
  return facts;
}

std::vector<std::string> FilesOf(const ManifestFacts& facts) {
  std::vector<std::string> files;
  for (const Manifest& manifest : facts.partitions) {
    for (const SnapshotFile& file : manifest.files) files.push_back(file.name);
  }
  if (facts.checkpoint.has_value()) {
    for (const StateStripe& stripe : facts.checkpoint->stripes) files.push_back(stripe.object);
  }
  return files;
}

std::chrono::milliseconds TimeToRead(const ManifestFacts& facts) {
  constexpr uint64_t kBytesPerMs = 10'000;
  constexpr std::chrono::minutes kLeast{2};
  uint64_t bytes = 0;
  for (const Manifest& manifest : facts.partitions) {
    for (const SnapshotFile& file : manifest.files) bytes += file.bytes;
  }
  if (facts.checkpoint.has_value()) {
    for (const StateStripe& stripe : facts.checkpoint->stripes) bytes += stripe.bytes;
  }
  return std::min<std::chrono::milliseconds>(
      std::chrono::hours(1),
      kLeast + std::chrono::milliseconds(static_cast<int64_t>(2 * bytes / kBytesPerMs)));
}

void FillManifest(const ManifestFacts& facts, const std::string& snapshot_directory,
                  v1::GetManifestResponse* to) {
  for (uint32_t i = 0; i < facts.partitions.size(); ++i) {
    v1::PartitionManifest* partition = to->add_partitions();
    partition->set_partition(i);
    ToProto(facts.partitions[i], partition->mutable_manifest());
  }
  for (const auto& [id, table] : facts.tables) ToProto(table, to->add_tables());
  if (facts.model.has_value()) FillGroup(facts, to->mutable_group());
  to->set_snapshot_directory(snapshot_directory);
  to->set_commit_seq(facts.commit_seq.value());
  to->set_state(static_cast<uint32_t>(facts.state));
}

}  // namespace muster
