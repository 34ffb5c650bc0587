#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "master/sources/dataset_source.h"
#include "master/sources/lines/file_stamps.h"
#include "master/sources/lines/index_file.h"
#include "sharding/shard_layout.h"

namespace muster {

/// A dataset of files with lines: it finds the files by globs, indexes them once into
/// `<stateDirectory>/index/<dataset>.idx`, and recognises them by their pins. See DatasetSource.
///
/// Errors: kNotFound (nothing matches, a file is gone), kInvalidArgument (no record, a line too
/// long), kFailedPrecondition (a file changed, appeared or went since the job began; another
/// minibatch size), kAborted (a file changes right now).
class LinesDataset final : public DatasetSource {
 public:
  /// After so many bytes a scan writes what it has finished, and after each 64th of all.
  static constexpr uint64_t kPartBytes = 64 << 20;
  /// Requires a dataset with a LinesSpec.
  LinesDataset(const JobSpec& job, DatasetId dataset, uint64_t part_bytes = kPartBytes);

  absl::Status CheckSettings() const override { return absl::OkStatus(); }
  /// Expands the globs, and estimates records from the beginnings of the files.
  absl::StatusOr<SourcePreview> Preview() const override;
  /// Expands the globs. If there is an index, checks that the files are still the pinned ones (by
  /// the
  /// stamps, and by the pins of files whose stamps differ), and maps the index. Otherwise the files
  /// are read to the end, but those that a scan has finished that was cut off. A damaged index is
  /// made again (the Fingerprint then shows if the data are still the same).
  absl::Status Look(const LookOptions& look) override;
  absl::Status Keep() override;
  absl::Status OpenKept() override;

  std::shared_ptr<const ShardLayout> layout() const override { return layout_; }
  /// A hash over pins and layout, as text. Independent of where the files lie.
  std::string Fingerprint() const override;
  void Locate(std::span<const RecordRun> runs, ShardWork* work) const override;

 private:
  absl::Status Scan(const LookOptions& look);
  /// The numbers of the files that are scanned next, [first, last); `finished` are not.
  struct Group {
    size_t first = 0;
    size_t last = 0;
    uint64_t bytes = 0;
  };
  Group GroupFrom(size_t first, const std::map<std::string, SourceIndex>& finished,
                  uint64_t bytes_max) const;
  /// Writes `scanned_`, the first of all files.
  void KeepScanned() const;
  /// With `files_` and `index_`: it is open. Refuses data of which no shard can be made.
  absl::Status Assemble();

  const uint64_t seed_;
  const DatasetId id_;
  const DatasetSpec dataset_;
  const LinesSpec lines_;
  const std::string index_path_, seen_path_;
  const uint64_t part_bytes_;
  /// In the order of the layout's parts.
  std::vector<std::string> files_;
  std::optional<IndexFile> index_;
  std::shared_ptr<const ShardLayout> layout_;

  // From Look to Keep: the index is a new one, and how the files looked before they were read.
  std::vector<SourceIndex> scanned_;
  std::vector<FileStamp> stamps_;
  bool news_ = false;
};

}  // namespace muster
