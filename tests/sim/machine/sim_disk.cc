#include "tests/sim/machine/sim_disk.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "base/status.h"
#include "master/core/orphans.h"
#include "ps/snapshot/image_codec.h"

namespace muster::sim {
namespace {

std::string TemporaryName(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number) {
  return fmt::format("p{}/e{}-s{}.tmp", partition.value(), epoch.value(), ToString(number));
}

uint64_t HashOf(const std::vector<std::pair<std::string, std::string>>& entries) {
  uint64_t hash = 0;
  for (const auto& [key, value] : entries) {
    hash = XXH3_64bits_withSeed(key.data(), key.size(), hash);
    hash = XXH3_64bits_withSeed(value.data(), value.size(), hash);
  }
  return hash;
}

}  // namespace

void SimDisk::BeginWrite(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number) {
  if (!full_) temporary_.insert(TemporaryName(partition, epoch, number));
}

SimDisk::Marks SimDisk::MarksIn(const ps::PartitionImage& image) const {
  Marks marks;
  for (const ps::RowImage& rows : image.rows) {
    if (rows.table != kMarks) continue;
    for (size_t i = 0; i < rows.keys.size(); ++i) {
      const uint32_t part = workload_->PartOfMark(rows.keys[i]);
      marks.parts.set(part);
      if (rows.rows[i] != 1) {
        marks.broken =
            fmt::format("{} is in a snapshot {} times", workload_->NameOf(part), rows.rows[i]);
      }
    }
  }
  return marks;
}

absl::StatusOr<SnapshotFile> SimDisk::Write(PartitionId partition, OwnerEpoch epoch,
                                            SnapshotNumber number,
                                            const ps::PartitionImage& image) {
  temporary_.erase(TemporaryName(partition, epoch, number));
  if (full_) {
    probes_->Hit(Probe::kFullDisk);
    return absl::ResourceExhaustedError("no space for a snapshot");
  }
  File file;
  MUSTER_RETURN_IF_ERROR(ps::EncodeImage({partition, epoch, number}, image,
                                         [&](std::string_view key, std::string_view value) {
                                           file.bytes += key.size() + value.size();
                                           file.entries.emplace_back(key, value);
                                           return absl::OkStatus();
                                         }));
  file.hash = HashOf(file.entries);
  file.epoch = epoch;
  file.marks = MarksIn(image);
  const std::string name =
      fmt::format("p{}/e{}-s{}-{}-{:x}", partition.value(), epoch.value(), ToString(number),
                  image.kind == ps::SnapshotKind::kBase ? "base" : "delta", file.hash);
  const uint64_t bytes = file.bytes;
  files_[name] = std::move(file);
  return SnapshotFile{name, bytes};
}

absl::StatusOr<ps::PartitionImage> SimDisk::ReadFile(PartitionId partition,
                                                     const SnapshotFile& file, Rng* reader) {
  const auto found = files_.find(file.name);
  if (found == files_.end()) return absl::DataLossError(file.name + " is missing");
  const auto& entries = found->second.entries;
  size_t count = entries.size();
  if (reader != nullptr && reader->Below(1000) < torn_reads_) {
    count = reader->Below(count);
    probes_->Hit(Probe::kTornFile);
  }
  ps::ImageDecoder decoder;
  for (size_t i = 0; i < count; ++i) {
    MUSTER_RETURN_IF_ERROR_PREPEND(decoder.Add(entries[i].first, entries[i].second), file.name);
  }
  MUSTER_ASSIGN_OR_RETURN(ps::PartitionImage image, decoder.Finish());
  if (found->second.bytes != file.bytes || decoder.identity().partition != partition) {
    return absl::DataLossError(file.name + " is not what the manifest says");
  }
  return image;
}

absl::StatusOr<std::vector<ps::PartitionImage>> SimDisk::ReadAs(PartitionId partition,
                                                                const Manifest& manifest,
                                                                Rng* reader) {
  std::vector<ps::PartitionImage> images;
  for (const SnapshotFile& file : manifest.files) {
    MUSTER_ASSIGN_OR_RETURN(ps::PartitionImage image, ReadFile(partition, file, reader));
    images.push_back(std::move(image));
  }
  return images;
}

absl::StatusOr<std::shared_ptr<const ps::WarmStartSource>> SimDisk::OpenWarmStart(
    const TableSpec& table, uint32_t) {
  return absl::UnimplementedError(table.name);
}

void SimDisk::Delete(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    files_.erase(name);
    probes_->Hit(Probe::kUnusedFile);
  }
}

void SimDisk::DeleteOrphans(const std::set<std::string>& named, MasterIncarnation own) {
  const size_t before = files_.size() + temporary_.size();
  std::erase_if(files_, [&](const auto& file) { return MaySweep(file.first, named, own); });
  std::erase_if(temporary_, [&](const auto& name) { return MaySweep(name, named, own); });
  probes_->Hit(Probe::kOrphanFile, before - files_.size() - temporary_.size());
}

size_t SimDisk::PowerLoss() {
  // Published files were synced before they had their names.
  return std::exchange(temporary_, {}).size();
}

SimDisk::Marks SimDisk::MarksOf(const std::vector<SnapshotFile>& chain) const {
  Marks all;
  for (const SnapshotFile& file : chain) {
    const auto found = files_.find(file.name);
    if (found == files_.end()) {
      all.broken = fmt::format("the manifest names {}, which does not exist", file.name);
      continue;
    }
    all.parts |= found->second.marks.parts;
    if (!found->second.marks.broken.empty()) all.broken = found->second.marks.broken;
  }
  return all;
}

}  // namespace muster::sim
