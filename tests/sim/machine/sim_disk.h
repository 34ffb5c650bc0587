#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "proto/messages/control.h"
#include "ps/engine/partition.h"
#include "ps/service/storage.h"
#include "tests/sim/machine/scheduler.h"
#include "tests/sim/probes.h"
#include "tests/sim/workload.h"

namespace muster::sim {

/// The snapshot directory: what ps/snapshot does to a real one, with the real encoding of images,
/// in memory. A process that dies leaves its temporary file behind, a power cut takes what was not
/// synced. A reader may be given a torn copy, and a writer find no room.
class SimDisk final : public ps::Storage {
 public:
  SimDisk(nanoseconds delay_max, const Workload* workload, Probes* probes)
      : delay_max_(delay_max), workload_(workload), probes_(probes) {}

  /// How long a read or a write takes at most.
  nanoseconds delay_max() const { return delay_max_; }

  /// The temporary file of a write that begins now.
  void BeginWrite(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number);
  absl::StatusOr<SnapshotFile> Write(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number,
                                     const ps::PartitionImage& image) override;
  absl::StatusOr<std::vector<ps::PartitionImage>> Read(PartitionId partition,
                                                       const Manifest& manifest) override {
    return ReadAs(partition, manifest, nullptr);
  }
  /// The same for a process that may be given torn bytes, drawn from its stream.
  absl::StatusOr<std::vector<ps::PartitionImage>> ReadAs(PartitionId partition,
                                                         const Manifest& manifest, Rng* reader);
  absl::StatusOr<std::shared_ptr<const ps::WarmStartSource>> OpenWarmStart(
      const TableSpec& table, uint32_t partition_count) override;

  void Delete(const std::vector<std::string>& names);
  /// What a new run of the master does: it deletes the files that are not named, and are not of its
  /// own or a newer incarnation.
  void DeleteOrphans(const std::set<std::string>& named, MasterIncarnation own);
  /// Returns how many files were lost.
  size_t PowerLoss();

  // Faults.
  void set_full(bool full) { full_ = full; }
  void set_delay_max(nanoseconds max) { delay_max_ = max; }
  /// In 1/1000: how often a read is given torn bytes.
  void set_torn_reads(uint64_t chance) { torn_reads_ = chance; }

  // For the oracle, which trusts no decoder.
  bool Has(const std::string& name) const { return files_.contains(name); }
  /// Under which the file was written; 0: there is none.
  OwnerEpoch EpochOf(const std::string& name) const {
    const auto found = files_.find(name);
    return found == files_.end() ? OwnerEpoch() : found->second.epoch;
  }
  /// The marks in the rows of a chain's files; a mark that is not 1 is in `broken`.
  struct Marks {
    PartSet parts;
    std::string broken;
  };
  Marks MarksOf(const std::vector<SnapshotFile>& chain) const;

 private:
  struct File {
    std::vector<std::pair<std::string, std::string>> entries;
    uint64_t bytes = 0;
    uint64_t hash = 0;
    OwnerEpoch epoch;
    Marks marks;
  };
  Marks MarksIn(const ps::PartitionImage& image) const;
  absl::StatusOr<ps::PartitionImage> ReadFile(PartitionId partition, const SnapshotFile& file,
                                              Rng* reader);

  nanoseconds delay_max_;
  const Workload* const workload_;
  Probes* const probes_;
  std::map<std::string, File> files_;
  std::set<std::string> temporary_;
  bool full_ = false;
  uint64_t torn_reads_ = 0;
};

}  // namespace muster::sim
