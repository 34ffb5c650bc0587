#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "master/sources/lines/file_stamps.h"
#include "master/sources/lines/index_file.h"

/// Whether a dataset is still what it was when it was indexed. Errors are kFailedPrecondition, name
/// the file and say what to do.
namespace muster {

/// Whether it is still cut as it was.
absl::Status CheckParameters(const IndexParameters& now, const IndexFile& index);

/// StampFiles; the first error is that of all.
absl::StatusOr<std::vector<FileStamp>> LookAt(const std::vector<std::string>& files);

struct PinnedCheck {
  /// How the files looked before their pins were read: they may be taken for seen from now on.
  std::vector<FileStamp> stamps;
  /// Some looked otherwise than when they were last seen.
  bool news = false;
};
/// Whether `files` are as many as were indexed, and each is the one that was. Reads the pins of
/// those that are not as they were seen (ReadFileStamps of `seen_path`).
absl::StatusOr<PinnedCheck> CheckPinnedFiles(const std::vector<std::string>& files,
                                             const IndexFile& index, const std::string& seen_path);

}  // namespace muster
