#pragma once

#include <fmt/format.h>
#include <sys/resource.h>

#include <map>
#include <string>

#include "base/mutex.h"
#include "ps/service/storage.h"
#include "sharding/partition_of.h"

namespace muster::ps::testing {

/// Files as a map. Outlives the server, as a shared file system would. Thread-safe.
class MemoryFiles {
 public:
  /// The next writes fail with this until it is OK again.
  void FailWrites(absl::Status status) {
    MutexLock lock(&mutex_);
    failure_ = std::move(status);
  }
  /// Waits until so many writes have failed; gives up after half a minute.
  bool WaitForFailedWrites(int count) {
    MutexLock lock(&mutex_);
    while (failed_writes_ < count) {
      if (!changed_.WaitFor(&mutex_, std::chrono::seconds(30))) return false;
    }
    return true;
  }
  /// As FailWrites and WaitForFailedWrites, for reads.
  void FailReads(absl::Status status) {
    MutexLock lock(&mutex_);
    read_failure_ = std::move(status);
  }
  int failed_reads() {
    MutexLock lock(&mutex_);
    return failed_reads_;
  }
  bool WaitForFailedReads(int count) {
    MutexLock lock(&mutex_);
    while (failed_reads_ < count) {
      if (!changed_.WaitFor(&mutex_, std::chrono::seconds(30))) return false;
    }
    return true;
  }
  /// As above, for the rows that tables start from.
  void FailWarmStarts(absl::Status status) {
    MutexLock lock(&mutex_);
    warm_start_failure_ = std::move(status);
  }
  absl::Status WarmStartFailure() {
    MutexLock lock(&mutex_);
    return warm_start_failure_;
  }
  /// The niceness of the thread that wrote last.
  int writer_niceness() {
    MutexLock lock(&mutex_);
    return writer_niceness_;
  }
  absl::StatusOr<SnapshotFile> Write(const std::string& name, const PartitionImage& image) {
    MutexLock lock(&mutex_);
    writer_niceness_ = ::getpriority(PRIO_PROCESS, 0);
    if (!failure_.ok()) {
      ++failed_writes_;
      changed_.SignalAll();
      return failure_;
    }
    files_[name] = image;
    return SnapshotFile{name, 1};
  }
  /// No read ends before so many have begun.
  void HoldReadsUntil(int count) {
    MutexLock lock(&mutex_);
    held_until_ = count;
  }
  bool WaitForReads(int count) {
    MutexLock lock(&mutex_);
    while (reads_ < count) {
      if (!changed_.WaitFor(&mutex_, std::chrono::seconds(30))) return false;
    }
    return true;
  }
  absl::StatusOr<PartitionImage> Read(const std::string& name) {
    MutexLock lock(&mutex_);
    ++reads_;
    changed_.SignalAll();
    while (reads_ < held_until_) {
      if (!changed_.WaitFor(&mutex_, std::chrono::seconds(90))) break;
    }
    if (!read_failure_.ok()) {
      ++failed_reads_;
      changed_.SignalAll();
      return read_failure_;
    }
    const auto found = files_.find(name);
    if (found == files_.end()) return absl::DataLossError(fmt::format("{} is missing", name));
    return found->second;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int writer_niceness_ MUSTER_GUARDED_BY(mutex_) = 0;
  int reads_ MUSTER_GUARDED_BY(mutex_) = 0;
  int held_until_ MUSTER_GUARDED_BY(mutex_) = 0;
  int failed_reads_ MUSTER_GUARDED_BY(mutex_) = 0;
  absl::Status read_failure_ MUSTER_GUARDED_BY(mutex_);
  int failed_writes_ MUSTER_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ MUSTER_GUARDED_BY(mutex_);
  absl::Status warm_start_failure_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, PartitionImage> files_ MUSTER_GUARDED_BY(mutex_);
};

/// One row, key 1, with every column 9.
class OneRow final : public WarmStartSource {
 public:
  explicit OneRow(uint32_t dim, uint32_t partitions, TableId table)
      : values_(dim, 9.0f), partition_(PartitionOf(table, 1, partitions)) {}
  void ForEachRow(PartitionId partition,
                  absl::FunctionRef<void(uint64_t, std::span<const float>)> row) const override {
    if (partition == partition_) row(1, values_);
  }

 private:
  const std::vector<float> values_;
  const PartitionId partition_;
};

/// Storage over MemoryFiles; every warm start has OneRow, or fails.
class MemoryStorage final : public Storage {
 public:
  explicit MemoryStorage(MemoryFiles* files) : files_(files) {}

  absl::StatusOr<SnapshotFile> Write(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number,
                                     const PartitionImage& image) override {
    return files_->Write(fmt::format("{}.{}.{}", partition.value(), epoch.value(), number.value()),
                         image);
  }
  absl::StatusOr<std::vector<PartitionImage>> Read(PartitionId /*partition*/,
                                                   const Manifest& manifest) override {
    std::vector<PartitionImage> images;
    for (const SnapshotFile& file : manifest.files) {
      auto image = files_->Read(file.name);
      if (!image.ok()) return image.status();
      images.push_back(*std::move(image));
    }
    return images;
  }
  absl::StatusOr<std::shared_ptr<const WarmStartSource>> OpenWarmStart(
      const TableSpec& table, uint32_t partition_count) override {
    const absl::Status failure = files_->WarmStartFailure();
    if (!failure.ok()) return failure;
    return std::make_shared<OneRow>(table.dim, partition_count, table.id);
  }

 private:
  MemoryFiles* const files_;
};

}  // namespace muster::ps::testing
