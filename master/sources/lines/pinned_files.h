#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "master/sources/lines/file_stamps.h"
#include "master/sources/lines/index_file.h"

/// Checks that a dataset is unchanged since it was indexed. Errors are kFailedPrecondition, name
/// the file and say what to do.
namespace muster {

/// Checks that it is still cut in the same way.
absl::Status CheckParameters(const IndexParameters& now, const IndexFile& index);

/// StampFiles; returns the first error.
absl::StatusOr<std::vector<FileStamp>> LookAt(const std::vector<std::string>& files,
                                              const AliveFn& alive = {});

struct PinnedCheck {
  /// The stamps before the pins were read; the files count as seen with these stamps from now on.
  std::vector<FileStamp> stamps;
  /// True if some stamps have changed since the files were last seen.
  bool news = false;
};
/// Checks that `files` are the indexed files, in number and contents. Reads the pins of those whose
/// stamps have changed since they were last seen (ReadFileStamps of `seen_path`).
absl::StatusOr<PinnedCheck> CheckPinnedFiles(const std::vector<std::string>& files,
                                             const IndexFile& index, const std::string& seen_path,
                                             const AliveFn& alive = {});

}  // namespace muster
