#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "master/sources/lines/parallel.h"

namespace muster {

/// Facts of the file system about a file, without reading it. While none of them changes, the file
/// counts as unchanged. Copies, and the same file on another disk, differ.
struct FileStamp {
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;  // of content, name or rights; no program can set it back
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Looks at the files, in parallel, in order; an error names its file.
std::vector<absl::StatusOr<FileStamp>> StampFiles(const std::vector<std::string>& paths,
                                                  uint32_t threads, const AliveFn& alive = {});

/// The stamps of a dataset's files when their pins were last found correct, stored beside its
/// index. A restart then reads the pins only of files that differ. Written completely or not at
/// all.
absl::Status WriteFileStamps(const std::string& path, std::span<const FileStamp> stamps);
/// Empty if there is no file, if it is damaged, or if it has another number of files. Then read
/// every pin.
std::vector<FileStamp> ReadFileStamps(const std::string& path, size_t count);

}  // namespace muster
