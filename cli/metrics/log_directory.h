#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "cli/metrics/points.h"

namespace muster::metrics {

/// A folder that TensorBoard reads: DATASET/events.out.tfevents.muster for each dataset, the event
/// files of one job. A point that a file has is not written again, and a record that a kill tore is
/// replaced. So the files are the same, however often the writer is killed. Not thread-safe.
class LogDirectory {
 public:
  /// Makes the folder, and holds a lock on it while it lives. kAlreadyExists: another process
  /// writes there. `writer` is in the first record of each file; only files with it are added to.
  static absl::StatusOr<LogDirectory> Open(const std::string& path, const std::string& writer);

  /// Adds what the files lack, and returns the number of points added. kFailedPrecondition: a file
  /// is of another writer. After an error, call again: nothing is lost.
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
