#include "master/sources/lines/indexer.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "base/status.h"
#include "master/sources/lines/file_reader.h"
#include "master/sources/lines/parallel.h"
#include "sharding/lines/file_start.h"

namespace muster {
namespace {

constexpr std::chrono::milliseconds kProgressInterval{200};

/// One chunk of one file.
struct ChunkTask {
  uint32_t source = 0;
  uint64_t begin = 0;
  uint32_t bytes = 0;
};

/// One run of IndexFiles. Threads take chunks in order and scan them in parallel; finished scans
/// are merged in order under the mutex, which costs O(records / stride) in all. A thread does not
/// start a chunk more than `window_` ahead of the merge, so that few scans are held. All members
/// are immutable while threads run, but those guarded.
class IndexRun {
 public:
  IndexRun(const std::vector<std::string>& paths, const IndexOptions& options)
      : paths_(paths), options_(options) {}

  absl::Status Plan() {
    for (uint32_t source = 0; source < paths_.size(); ++source) {
      MUSTER_ASSIGN_OR_RETURN(const FileReader file, FileReader::Open(paths_[source]));
      MUSTER_ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
      sizes_.push_back(bytes);
      bytes_total_ += bytes;
      builders_.emplace_back(paths_[source], options_.header, options_.stride);
      for (uint64_t begin = 0; begin < bytes; begin += options_.chunk_bytes) {
        const auto length = std::min<uint64_t>(options_.chunk_bytes, bytes - begin);
        tasks_.push_back({source, begin, static_cast<uint32_t>(length)});
      }
      if (options_.alive) options_.alive();
    }
    return absl::OkStatus();
  }

  absl::Status Scan(const IndexProgressFn& progress) {
    const uint32_t threads = ThreadCount(options_.threads, tasks_.size());
    window_ = uint64_t{threads} * 4;
    std::vector<std::thread> pool;
    for (uint32_t i = 0; i < threads; ++i) pool.emplace_back([this] { Work(); });
    while (true) {
      uint64_t done = 0;
      {
        MutexLock lock(&mutex_);
        if (!Finished()) changed_.WaitFor(&mutex_, kProgressInterval);
        if (Finished()) break;
        done = bytes_merged_;
      }
      if (progress) progress({.bytes_done = done, .bytes_total = bytes_total_});
    }
    for (std::thread& thread : pool) thread.join();
    MutexLock lock(&mutex_);
    if (progress && status_.ok()) {
      progress({.bytes_done = bytes_merged_, .bytes_total = bytes_total_});
    }
    return status_;
  }

  absl::StatusOr<std::vector<SourceIndex>> Finish() {
    const auto pins = PinFiles(paths_, options_.threads, options_.alive);
    std::vector<SourceIndex> result;
    for (uint32_t source = 0; source < paths_.size(); ++source) {
      MUSTER_RETURN_IF_ERROR(pins[source].status());
      if (pins[source]->bytes != sizes_[source]) return Changed(source);
      MUSTER_ASSIGN_OR_RETURN(LineIndex lines, builders_[source].Finish());
      result.push_back({paths_[source], *pins[source], std::move(lines)});
      if (options_.header == HeaderLine::kNone) continue;
      MUSTER_ASSIGN_OR_RETURN(const FileReader file, FileReader::Open(paths_[source]));
      MUSTER_ASSIGN_OR_RETURN(const std::string header, HeaderOf(file.AsReadAt()));
      result.back().header = DigestOfHeader(header);
    }
    return result;
  }

 private:
  absl::Status Changed(uint32_t source) const {
    return absl::AbortedError(
        fmt::format("{} changes while it is being indexed (it had {} bytes at first). Stop the "
                    "program that writes it, then run again",
                    paths_[source], sizes_[source]));
  }

  bool Finished() const MUSTER_REQUIRES(mutex_) {
    return merged_ == tasks_.size() || !status_.ok();
  }

  absl::StatusOr<ChunkScan> ScanTask(const ChunkTask& task, std::string* buffer) const {
    MUSTER_ASSIGN_OR_RETURN(const FileReader file, FileReader::Open(paths_[task.source]));
    MUSTER_ASSIGN_OR_RETURN(const size_t got,
                            file.ReadAt(task.begin, std::span(buffer->data(), task.bytes)));
    if (got != task.bytes) return Changed(task.source);
    return ScanChunk(task.begin, std::string_view(buffer->data(), got));
  }

  void Work() {
    std::string buffer(options_.chunk_bytes, '\0');
    while (true) {
      uint64_t ticket = 0;
      {
        MutexLock lock(&mutex_);
        // The holder of the ticket for which the merge waits never waits here.
        while (!Finished() && next_ < tasks_.size() && next_ >= merged_ + window_) {
          changed_.Wait(&mutex_);
        }
        if (Finished() || next_ == tasks_.size()) return;
        ticket = next_++;
      }
      auto scan = ScanTask(tasks_[ticket], &buffer);
      if (options_.alive) options_.alive();
      MutexLock lock(&mutex_);
      scanned_.emplace(ticket, std::move(scan));
      Merge();
    }
  }

  void Merge() MUSTER_REQUIRES(mutex_) {
    while (!Finished() && !scanned_.empty() && scanned_.begin()->first == merged_) {
      const auto scan = std::move(scanned_.begin()->second);
      scanned_.erase(scanned_.begin());
      status_ = scan.ok() ? builders_[tasks_[merged_].source].Append(*scan) : scan.status();
      bytes_merged_ += tasks_[merged_].bytes;
      ++merged_;
    }
    changed_.SignalAll();
  }

  const std::vector<std::string>& paths_;
  const IndexOptions options_;
  std::vector<uint64_t> sizes_;
  std::vector<ChunkTask> tasks_;
  uint64_t bytes_total_ = 0;
  uint64_t window_ = 1;

  Mutex mutex_;
  CondVar changed_;
  uint64_t next_ MUSTER_GUARDED_BY(mutex_) = 0;
  uint64_t merged_ MUSTER_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_merged_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, absl::StatusOr<ChunkScan>> scanned_ MUSTER_GUARDED_BY(mutex_);
  absl::Status status_ MUSTER_GUARDED_BY(mutex_);
  std::vector<LineIndexBuilder> builders_;  // used by Merge, or while no thread runs
};

}  // namespace

absl::StatusOr<std::vector<SourceIndex>> IndexFiles(const std::vector<std::string>& paths,
                                                    const IndexOptions& options,
                                                    const IndexProgressFn& progress) {
  MUSTER_CHECK(options.chunk_bytes > 0 && options.chunk_bytes <= kScanChunkBytesMax);
  IndexRun run(paths, options);
  MUSTER_RETURN_IF_ERROR(run.Plan());
  MUSTER_RETURN_IF_ERROR(run.Scan(progress));
  return run.Finish();
}

std::vector<absl::StatusOr<SourcePin>> PinFiles(const std::vector<std::string>& paths,
                                                uint32_t threads, const AliveFn& alive) {
  std::vector<absl::StatusOr<SourcePin>> pins(paths.size(), absl::UnknownError("not pinned"));
  ForEachInParallel(paths.size(), threads, [&](size_t i) { pins[i] = PinFile(paths[i]); }, alive);
  return pins;
}

}  // namespace muster
