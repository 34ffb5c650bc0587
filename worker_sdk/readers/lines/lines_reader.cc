#include "worker_sdk/readers/lines/lines_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/status.h"
#include "sharding/lines/file_start.h"
#include "sharding/lines/line_index.h"
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

absl::Status Changed(const ShardWork& work, std::string_view what) {
  return absl::FailedPreconditionError(
      fmt::format("{} is not the file that the job has indexed: {}. Put the original file back, or "
                  "start a new job in another state directory",
                  work.path, what));
}

}  // namespace

struct LinesReader::Source {
  int fd = -1;
  Verified verified;
  std::string header;
  ~Source() {
    if (fd >= 0) ::close(fd);
  }
};

bool LinesReader::Verified::Matches(const struct stat& now, const ShardWork& work) const {
  return bytes == static_cast<uint64_t>(now.st_size) && changed.tv_sec == now.st_mtim.tv_sec &&
         changed.tv_nsec == now.st_mtim.tv_nsec && bytes == work.source_bytes &&
         hash == work.source_hash;
}

LinesReader::LinesReader() = default;
LinesReader::~LinesReader() = default;

absl::StatusOr<std::shared_ptr<LinesReader::Source>> LinesReader::Open(const ShardWork& work) {
  {
    struct stat now{};
    MutexLock lock(&mutex_);
    const std::shared_ptr<Source>* known = open_.Find(work.path);
    if (known != nullptr && ::stat(work.path.c_str(), &now) == 0 &&
        (*known)->verified.Matches(now, work)) {
      return *known;
    }
  }
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<Source> source, OpenAnew(work));
  MutexLock lock(&mutex_);
  verified_.Put(work.path, source->verified);
  open_.Put(work.path, source);
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

absl::Status LinesReader::Verify(const ShardWork& work, Source* source) {
  struct stat now{};
  if (::fstat(source->fd, &now) != 0) {
    return ErrnoStatus(errno, fmt::format("cannot look at {}", work.path));
  }
  const auto bytes = static_cast<uint64_t>(now.st_size);
  if (bytes != work.source_bytes) {
    return Changed(
        work, fmt::format("it has {} bytes, the indexed one had {}", bytes, work.source_bytes));
  }
  {
    MutexLock lock(&mutex_);
    const Verified* known = verified_.Find(work.path);
    if (known != nullptr && known->Matches(now, work)) {
      source->verified = *known;
      return absl::OkStatus();
    }
  }
  MUSTER_ASSIGN_OR_RETURN(SourcePin pin,
                          PinSource(bytes, [&](uint64_t offset, std::span<char> buffer) {
                            return ReadFully(source->fd, work.path, offset, buffer);
                          }));
  if (pin.hash != work.source_hash) {
    return Changed(work, "its size is the same, but its content is another one");
  }
  source->verified = {bytes, pin.hash, now.st_mtim};
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<LinesReader::Source>> LinesReader::OpenAnew(const ShardWork& work) {
  auto source = std::make_shared<Source>();
  MUSTER_ASSIGN_OR_RETURN(source->fd, Descriptor(work.path));
  MUSTER_RETURN_IF_ERROR(Verify(work, source.get()));
  if (!work.has_header) return source;
  size_t want = 4096;
  while (true) {
    source->header.resize(want);
    MUSTER_ASSIGN_OR_RETURN(size_t n, ReadFully(source->fd, work.path, 0, source->header));
    source->header.resize(n);
    size_t end = source->header.find('\n');
    if (end != std::string::npos) source->header.resize(end);
    if (end != std::string::npos || n < want || want >= kRecordBytesMax) break;
    want *= 16;
  }
  source->header = std::string(WithoutMark(source->header));
  if (source->header.ends_with('\r')) source->header.pop_back();
  return source;
}

absl::StatusOr<ShardRecords> LinesReader::Read(const ShardWork& work, const KeepWaiting&) {
  if (work.byte_end < work.byte_begin || work.byte_end > work.source_bytes ||
      work.byte_end - work.byte_begin > kShardBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("a shard of {} covers the bytes [{}, {}) of {}: at most {} can be read",
                    work.path, work.byte_begin, work.byte_end, work.source_bytes, kShardBytesMax));
  }
  try {
    return ReadRange(work);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(fmt::format(
        "no memory for the {} bytes and {} records of a shard of {}: give the worker more, or make "
        "the shards smaller",
        work.byte_end - work.byte_begin, work.record_count, work.path));
  }
}

absl::StatusOr<ShardRecords> LinesReader::ReadRange(const ShardWork& work) {
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<Source> source, Open(work));
  std::vector<char> bytes(work.byte_end - work.byte_begin);
  MUSTER_ASSIGN_OR_RETURN(size_t n, ReadFully(source->fd, work.path, work.byte_begin, bytes));
  if (n < bytes.size()) {
    return Changed(work, fmt::format("it ends at byte {}", work.byte_begin + n));
  }
  MUSTER_ASSIGN_OR_RETURN(ShardRecords records, CutRecords(work, std::move(bytes)));
  records.header = source->header;
  return records;
}

absl::StatusOr<ShardRecords> CutRecords(const ShardWork& work, std::vector<char> bytes) {
  ShardRecords result;
  result.bytes = std::move(bytes);
  std::vector<std::string_view> lines;
  lines.reserve(work.record_count);
  const char* at = result.bytes.data();
  const char* end = at + result.bytes.size();
  while (at < end && lines.size() <= work.record_count) {
    const void* found = std::memchr(at, '\n', static_cast<size_t>(end - at));
    const char* line_end = found == nullptr ? end : static_cast<const char*>(found);
    std::string_view line(at, static_cast<size_t>(line_end - at));
    if (work.byte_begin == 0 && lines.empty()) line = WithoutMark(line);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    at = found == nullptr ? end : line_end + 1;
  }
  if (lines.size() != work.record_count) {
    return Changed(work, fmt::format("bytes [{}, {}) should hold {} records and hold {}{}",
                                     work.byte_begin, work.byte_end, work.record_count,
                                     lines.size() > work.record_count ? "more than " : "",
                                     std::min<size_t>(lines.size(), work.record_count)));
  }
  result.order = RecordOrder(work.shuffle_seed, work.record_count);
  result.records.reserve(lines.size());
  for (uint32_t index : result.order) result.records.push_back(lines[index]);
  const size_t size = std::max<size_t>(work.minibatch_size, 1);
  for (size_t begin = 0; begin < lines.size(); begin += size) result.minibatches.push_back(begin);
  result.minibatches.push_back(lines.size());
  return result;
}

std::string LinesReader::NameOf(const ShardWork& work) const {
  return fmt::format("bytes [{}, {}) of {}", work.byte_begin, work.byte_end, work.path);
}

std::string LinesReader::LocationOf(const ShardWork& work, const ShardRecords& records,
                                    size_t position) const {
  uint64_t line = work.first_record + records.order[position] + (work.has_header ? 2 : 1);
  return fmt::format("{}:{}", work.path, line);
}

}  // namespace muster::sdk
