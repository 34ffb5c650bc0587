#pragma once

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
  /// Requires a dataset with a LinesSpec.
  LinesDataset(const JobSpec& job, DatasetId dataset);

  absl::Status CheckSettings() const override { return absl::OkStatus(); }
  /// Expands the globs, and estimates records from the beginnings of the files.
  absl::StatusOr<SourcePreview> Preview() const override;
  /// Expands the globs. If there is an index, checks that the files are still the pinned ones (by
  /// the
  /// stamps, and by the pins of files whose stamps differ), and maps the index. Otherwise the files
  /// are read to the end. A damaged index is made again (the Fingerprint then shows if the data are
  /// still the same).
  absl::Status Look(const ProgressFn& progress) override;
  absl::Status Keep() override;
  absl::Status OpenKept() override;

  const ShardLayout& layout() const override { return layout_; }
  /// A hash over pins and layout, as text. Independent of where the files lie.
  std::string Fingerprint() const override;
  void Locate(uint32_t part, uint64_t number, ShardWork* work) const override;

 private:
  absl::Status Scan(const ProgressFn& progress);
  /// With `files_` and `index_`: it is open.
  void Assemble();

  const DatasetSpec dataset_;
  const LinesSpec lines_;
  const std::string index_path_, seen_path_;
  /// In the order of the layout's parts.
  std::vector<std::string> files_;
  std::optional<IndexFile> index_;
  ShardLayout layout_;

  // From Look to Keep: the index is a new one, and how the files looked before they were read.
  std::vector<SourceIndex> scanned_;
  std::vector<FileStamp> stamps_;
  bool news_ = false;
};

}  // namespace muster
