#include "worker_sdk/readers/lines/lines_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/status.h"
#include "sharding/lines/file_start.h"
#include "sharding/lines/source_pin.h"
#include "sharding/shard_order.h"

namespace muster::sdk {
namespace {

// A shard has records_per_shard lines. If it has more bytes than this, the job file has a mistake
// or a message is damaged.
constexpr uint64_t kShardBytesMax = uint64_t{4} << 30;

absl::StatusOr<size_t> ReadFully(int fd, const std::string& path, uint64_t offset,
                                 std::span<char> buffer) {
  size_t done = 0;
  while (done < buffer.size()) {
    ssize_t n =
        ::pread(fd, buffer.data() + done, buffer.size() - done, static_cast<off_t>(offset + done));
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
    done += static_cast<size_t>(n);
  }
  return done;
}

/// True if all of it is in the kernel's cache, and has been read. A disk is never waited for.
bool ReadCached(int fd, uint64_t offset, std::span<char> buffer) {
  struct iovec piece{buffer.data(), buffer.size()};
  return ::preadv2(fd, &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT) ==
         static_cast<ssize_t>(buffer.size());
}

absl::Status Changed(const SourceFile& file, std::string_view what) {
  return absl::FailedPreconditionError(
      fmt::format("{} is not the file that the job has indexed: {}. Put the original file back, or "
                  "start a new job in another state directory",
                  file.path, what));
}

size_t BytesOf(const SourceRun& run) {
  return run.byte_end - run.byte_begin;
}

uint64_t BytesOf(const ShardWork& work) {
  uint64_t bytes = 0;
  for (const SourceRun& run : work.runs) bytes += BytesOf(run);
  return bytes;
}

}  // namespace

struct LinesReader::Source {
  int fd = -1;
  Verified verified;
  ~Source() {
    if (fd >= 0) ::close(fd);
  }
  /// Of the file with this path, for errors. The source must outlive it.
  ReadAt Reads(const std::string& path) const {
    return [this, path](uint64_t offset, std::span<char> buffer) {
      return ReadFully(fd, path, offset, buffer);
    };
  }
};

bool LinesReader::Verified::Matches(const struct stat& now, const SourceFile& file) const {
  return bytes == static_cast<uint64_t>(now.st_size) && changed.tv_sec == now.st_mtim.tv_sec &&
         changed.tv_nsec == now.st_mtim.tv_nsec && bytes == file.bytes && hash == file.hash;
}

LinesReader::LinesReader() = default;
LinesReader::~LinesReader() = default;

absl::StatusOr<std::shared_ptr<LinesReader::Source>> LinesReader::Open(const SourceFile& file) {
  {
    struct stat now{};
    MutexLock lock(&mutex_);
    const std::shared_ptr<Source>* known = open_.Find(file.path);
    if (known != nullptr && ::stat(file.path.c_str(), &now) == 0 &&
        (*known)->verified.Matches(now, file)) {
      return *known;
    }
  }
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<Source> source, OpenAnew(file));
  MutexLock lock(&mutex_);
  verified_.Put(file.path, source->verified);
  open_.Put(file.path, source);
  return source;
}

absl::StatusOr<int> LinesReader::Descriptor(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
    {
      MutexLock lock(&mutex_);
      open_.Clear();
    }
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (fd >= 0) return fd;
  const int error = errno;
  std::string what = fmt::format("cannot open the source file {}", path);
  struct rlimit limit{};
  if (error == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    what += fmt::format(
        " (this process may have {} files open: raise `ulimit -n`, or close files "
        "in the trainer)",
        limit.rlim_cur);
  }
  return ErrnoStatus(error, what);
}

absl::Status LinesReader::Verify(const SourceFile& file, Source* source) {
  struct stat now{};
  if (::fstat(source->fd, &now) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot look at {}", file.path));
  }
  const auto bytes = static_cast<uint64_t>(now.st_size);
  if (bytes != file.bytes) {
    return Changed(file, fmt::format("it has {} bytes, the indexed one had {}", bytes, file.bytes));
  }
  {
    MutexLock lock(&mutex_);
    const Verified* known = verified_.Find(file.path);
    if (known != nullptr && known->Matches(now, file)) {
      source->verified = *known;
      return absl::OkStatus();
    }
  }
  MUSTER_ASSIGN_OR_RETURN(SourcePin pin, PinSource(bytes, source->Reads(file.path)));
  if (pin.hash != file.hash) {
    return Changed(file, "its size is the same, but its content is another one");
  }
  source->verified = {bytes, pin.hash, now.st_mtim};
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<LinesReader::Source>> LinesReader::OpenAnew(const SourceFile& file) {
  auto source = std::make_shared<Source>();
  MUSTER_ASSIGN_OR_RETURN(source->fd, Descriptor(file.path));
  MUSTER_RETURN_IF_ERROR(Verify(file, source.get()));
  return source;
}

absl::StatusOr<ShardRecords> LinesReader::Read(const ShardWork& work, const KeepWaiting&) {
  if (BytesOf(work) > kShardBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} of dataset '{}' have {} bytes: at most {} can be read at once, so make the "
                    "shards smaller",
                    NameOf(work), work.dataset_name, BytesOf(work), kShardBytesMax));
  }
  try {
    return ReadRuns(work);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        fmt::format("no memory for the {} bytes and {} records of a shard ({}): give the worker "
                    "more, or make the shards smaller",
                    BytesOf(work), work.record_count, NameOf(work)));
  }
}

absl::StatusOr<ShardRecords> LinesReader::ReadRuns(const ShardWork& work) {
  std::vector<char> bytes(BytesOf(work));
  struct Piece {
    const SourceRun* run;
    std::span<char> to;
  };
  std::vector<std::vector<Piece>> by_file(work.files.size());
  size_t place = 0;
  for (const SourceRun& run : work.runs) {
    by_file[run.file].push_back({&run, std::span(bytes).subspan(place, BytesOf(run))});
    place += BytesOf(run);
  }
  std::string header;
  for (size_t i = 0; i < by_file.size(); ++i) {
    const SourceFile& file = work.files[i];
    MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<Source> source, Open(file));
    // What is not cached is asked for first, so that the disk may fetch all pieces at once. It is
    // only a hint, so an error does not matter.
    std::vector<Piece> missing;
    for (const Piece& piece : by_file[i]) {
      if (ReadCached(source->fd, piece.run->byte_begin, piece.to)) continue;
      ::posix_fadvise(source->fd, static_cast<off_t>(piece.run->byte_begin),
                      static_cast<off_t>(piece.to.size()), POSIX_FADV_WILLNEED);
      missing.push_back(piece);
    }
    for (const Piece& piece : missing) {
      MUSTER_ASSIGN_OR_RETURN(const size_t n,
                              ReadFully(source->fd, file.path, piece.run->byte_begin, piece.to));
      if (n < piece.to.size()) {
        return Changed(file, fmt::format("it ends at byte {}", piece.run->byte_begin + n));
      }
    }
    if (i > 0 || !work.has_header) continue;
    MUSTER_ASSIGN_OR_RETURN(header, HeaderOf(source->Reads(file.path)));
  }
  MUSTER_ASSIGN_OR_RETURN(ShardRecords records, CutRecords(work, std::move(bytes)));
  records.header = std::move(header);
  return records;
}

absl::StatusOr<ShardRecords> CutRecords(const ShardWork& work, std::vector<char> bytes) {
  ShardRecords result;
  result.bytes = std::move(bytes);
  std::vector<std::string_view> lines;
  lines.reserve(work.record_count);
  const char* at = result.bytes.data();
  for (const SourceRun& run : work.runs) {
    const char* const end = at + BytesOf(run);
    const uint64_t want = uint64_t{run.records_before} + run.record_count + run.records_behind;
    uint64_t count = 0;
    for (; at < end && count <= want; ++count) {
      const void* found = std::memchr(at, '\n', static_cast<size_t>(end - at));
      const char* line_end = found == nullptr ? end : static_cast<const char*>(found);
      std::string_view line(at, static_cast<size_t>(line_end - at));
      at = found == nullptr ? end : line_end + 1;
      if (count < run.records_before || count >= run.records_before + run.record_count) continue;
      if (run.byte_begin == 0 && count == 0) line = WithoutMark(line);
      if (line.ends_with('\r')) line.remove_suffix(1);
      lines.push_back(line);
    }
    if (count != want) {
      return Changed(
          work.files[run.file],
          fmt::format("bytes [{}, {}) should hold {} records and hold {}{}", run.byte_begin,
                      run.byte_end, want, count > want ? "more than " : "", std::min(count, want)));
    }
  }
  result.order = RecordOrder(work.shuffle_seed, work.record_count);
  result.records.reserve(lines.size());
  for (uint32_t index : result.order) result.records.push_back(lines[index]);
  result.minibatches = EqualMinibatches(work);
  return result;
}

std::string LinesReader::NameOf(const ShardWork& work) const {
  const SourceRun& first = work.runs.front();
  const std::string name = fmt::format("bytes [{}, {}) of {}", first.byte_begin, first.byte_end,
                                       work.files[first.file].path);
  return work.runs.size() == 1 ? name
                               : fmt::format("{} and {} more pieces", name, work.runs.size() - 1);
}

std::string LinesReader::LocationOf(const ShardWork& work, const ShardRecords& records,
                                    size_t position) const {
  uint64_t number = records.order[position];  // in the runs
  auto run = work.runs.begin();
  for (; number >= run->record_count; ++run) number -= run->record_count;
  return fmt::format("{}:{}", work.files[run->file].path,
                     run->first_record + number + (work.has_header ? 2 : 1));
}

}  // namespace muster::sdk
