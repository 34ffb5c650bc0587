#pragma once

#include <rocksdb/file_system.h>

#include <memory>

#include "base/mutex.h"
#include "tests/support/power_loss/disk_model.h"

namespace muster::testing {

/// RocksDB's files in a DiskModel. The root folder "/" exists and is durable. Thread-safe; what
/// DiskModel::OnChange set is called with the disk held.
class MemoryFileSystem final : public rocksdb::FileSystem {
 public:
  explicit MemoryFileSystem(DiskModel disk) : disk_(std::make_shared<Disk>(std::move(disk))) {}

  /// A copy of the disk as it is.
  DiskModel disk() const;
  void OnChange(std::function<void(const DiskModel&)> before);

  const char* Name() const override { return "MemoryFileSystem"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions&,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions&,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions&,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions&,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                    rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions&,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext*) override;
  rocksdb::IOStatus FileExists(const std::string& path, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetChildren(const std::string& path, const rocksdb::IOOptions&,
                                std::vector<std::string>* result,
                                rocksdb::IODebugContext*) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus Truncate(const std::string& path, size_t size, const rocksdb::IOOptions&,
                             rocksdb::IODebugContext*) override;
  rocksdb::IOStatus CreateDir(const std::string& path, const rocksdb::IOOptions&,
                              rocksdb::IODebugContext*) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const rocksdb::IOOptions&,
                                       rocksdb::IODebugContext*) override;
  rocksdb::IOStatus DeleteDir(const std::string& path, const rocksdb::IOOptions&,
                              rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetFileSize(const std::string& path, const rocksdb::IOOptions&, uint64_t* size,
                                rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetFileModificationTime(const std::string& path, const rocksdb::IOOptions&,
                                            uint64_t* time, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions&, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus LockFile(const std::string& path, const rocksdb::IOOptions&,
                             rocksdb::FileLock** lock, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus UnlockFile(rocksdb::FileLock* lock, const rocksdb::IOOptions&,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetTestDirectory(const rocksdb::IOOptions&, std::string* path,
                                     rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetAbsolutePath(const std::string& path, const rocksdb::IOOptions&,
                                    std::string* result, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus IsDirectory(const std::string& path, const rocksdb::IOOptions&, bool* is_folder,
                                rocksdb::IODebugContext*) override;

  /// The disk and who holds it; shared with open files.
  struct Disk {
    explicit Disk(DiskModel from) : model(std::move(from)) {}
    Mutex mutex;
    DiskModel model MUSTER_GUARDED_BY(mutex);
  };

 private:
  const std::shared_ptr<Disk> disk_;
};

}  // namespace muster::testing
