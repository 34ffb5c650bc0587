#include "cli/metrics/log_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "cli/metrics/event_file.h"

namespace muster::metrics {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{1} << 30;

}  // namespace

absl::StatusOr<LogDirectory> LogDirectory::Open(const std::string& path,
                                                const std::string& writer) {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(path));
  OwnedFd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", path));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, fmt::format("cannot lock {}", path));
    return absl::AlreadyExistsError(fmt::format(
        "another `muster tensorboard` writes into {}; end it, or name another folder", path));
  }
  return LogDirectory(path, writer, std::move(lock));
}

absl::StatusOr<uint64_t> LogDirectory::Add(const PointsOfDatasets& points, WallTime now) {
  uint64_t added = 0;
  for (const auto& [dataset, of_dataset] : points) {
    MUSTER_RETURN_IF_ERROR(MakeDirectory(path_ + "/" + dataset).status());
    MUSTER_ASSIGN_OR_RETURN(const uint64_t count, AddTo(FileOf(dataset), of_dataset, now));
    added += count;
  }
  return added;
}

absl::StatusOr<uint64_t> LogDirectory::AddTo(const std::string& file_path,
                                             const std::vector<Point>& points, WallTime now) const {
  absl::StatusOr<std::string> bytes = ReadFile(file_path, kFileBytesMax);
  if (absl::IsNotFound(bytes.status())) bytes = "";
  if (!bytes.ok()) return bytes.status();
  const EventFile file = DecodeEventFile(*bytes);
  if (file.whole_bytes > 0 && file.writer != writer_) {
    return absl::FailedPreconditionError(
        fmt::format("{} was written for another job ('{}', not '{}'); name another folder, or "
                    "delete this one",
                    file_path, file.writer, writer_));
  }
  const std::vector<Point> missing = Missing(points, file);
  const bool whole = file.whole_bytes > 0 && file.whole_bytes == bytes->size();
  if (missing.empty() && whole) return 0;
  std::string added;
  for (const Point& point : missing) added += EncodePoint(point);
  if (whole) {
    // TensorBoard continues to read the same file, so it is changed in place.
    MUSTER_ASSIGN_OR_RETURN(OutputFile output, OutputFile::Open(file_path));
    MUSTER_RETURN_IF_ERROR(output.WriteAt(bytes->size(), added));
    return missing.size();
  }
  std::string contents = bytes->substr(0, file.whole_bytes);
  if (contents.empty()) contents = EncodeHead(writer_, static_cast<double>(now.count()) / 1e6);
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(file_path, contents + added));
  return missing.size();
}

}  // namespace muster::metrics
