#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "cli/metrics/points.h"

namespace muster::metrics {

/// A folder that TensorBoard reads. It has the event files of one job:
/// DATASET/events.out.tfevents.muster for each dataset. A point that is in a file is not written
/// again, and a record that was cut off by a kill is replaced. So the files are the same, however
/// often the writer is killed. Not thread-safe.
class LogDirectory {
 public:
  /// Makes the folder, and holds a lock on it while this object lives. kAlreadyExists if another
  /// process writes there. `writer` is in the first record of each file. Points are added only to
  /// files with this writer.
  static absl::StatusOr<LogDirectory> Open(const std::string& path, const std::string& writer);

  /// Adds points that the files lack, and returns how many were added. kFailedPrecondition if a
  /// file has another writer. After an error, call it again: nothing is lost.
  absl::StatusOr<uint64_t> Add(const PointsOfDatasets& points, WallTime now);

  std::string FileOf(const std::string& dataset) const {
    return path_ + "/" + dataset + "/events.out.tfevents.muster";
  }

 private:
  LogDirectory(std::string path, std::string writer, OwnedFd lock)
      : path_(std::move(path)), writer_(std::move(writer)), lock_(std::move(lock)) {}
  absl::StatusOr<uint64_t> AddTo(const std::string& file_path, const std::vector<Point>& points,
                                 WallTime now) const;
  std::string path_;
  std::string writer_;
  OwnedFd lock_;
};

}  // namespace muster::metrics
