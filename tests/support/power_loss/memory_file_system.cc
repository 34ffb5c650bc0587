#include "tests/support/power_loss/memory_file_system.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::testing {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using DiskPtr = std::shared_ptr<MemoryFileSystem::Disk>;

IOStatus NoSuchFile(const std::string& path) {
  return IOStatus::PathNotFound("No such file or directory", path);
}

IOStatus OkOr(bool done, const std::string& path) {
  return done ? IOStatus::OK() : NoSuchFile(path);
}

/// RocksDB asks for "/j/" and for "/j//000004.log", too.
std::string Clean(const std::string& path) {
  std::string clean;
  for (char c : path) {
    if (c != '/' || clean.empty() || clean.back() != '/') clean += c;
  }
  if (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  return clean;
}

/// What a file holds at some place; it may be renamed or deleted while it is open, so readers keep
/// the contents of when they were opened.
size_t CopyOut(const std::string& contents, uint64_t offset, size_t n, char* scratch) {
  const size_t begin = std::min<size_t>(offset, contents.size());
  const size_t size = std::min(n, contents.size() - begin);
  std::memcpy(scratch, contents.data() + begin, size);
  return size;
}

class Sequential final : public rocksdb::FSSequentialFile {
 public:
  explicit Sequential(std::string contents) : contents_(std::move(contents)) {}
  IOStatus Read(size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) override {
    *result = Slice(scratch, CopyOut(contents_, position_, n, scratch));
    position_ += result->size();
    return IOStatus::OK();
  }
  IOStatus Skip(uint64_t n) override {
    position_ += n;
    return IOStatus::OK();
  }

 private:
  const std::string contents_;
  uint64_t position_ = 0;
};

class RandomAccess final : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomAccess(std::string contents) : contents_(std::move(contents)) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    *result = Slice(scratch, CopyOut(contents_, offset, n, scratch));
    return IOStatus::OK();
  }

 private:
  const std::string contents_;
};

class Writable final : public rocksdb::FSWritableFile {
 public:
  Writable(DiskPtr disk, std::string path) : disk_(std::move(disk)), path_(std::move(path)) {}
  using rocksdb::FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    MutexLock lock(&disk_->mutex);
    size_ += data.size();
    return OkOr(disk_->model.Append(path_, {data.data(), data.size()}), path_);
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    MutexLock lock(&disk_->mutex);
    if (size == size_) return IOStatus::OK();
    size_ = size;
    return OkOr(disk_->model.Truncate(path_, size), path_);
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    MutexLock lock(&disk_->mutex);
    return OkOr(disk_->model.Sync(path_), path_);
  }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_; }

 private:
  const DiskPtr disk_;
  const std::string path_;
  uint64_t size_ = 0;
};

class RandomRW final : public rocksdb::FSRandomRWFile {
 public:
  RandomRW(DiskPtr disk, std::string path) : disk_(std::move(disk)), path_(std::move(path)) {}
  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions&, IODebugContext*) override {
    MutexLock lock(&disk_->mutex);
    return OkOr(disk_->model.Write(path_, offset, {data.data(), data.size()}), path_);
  }
  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    MutexLock lock(&disk_->mutex);
    const std::string* const contents = disk_->model.Contents(path_);
    if (contents == nullptr) return NoSuchFile(path_);
    *result = Slice(scratch, CopyOut(*contents, offset, n, scratch));
    return IOStatus::OK();
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    MutexLock lock(&disk_->mutex);
    return OkOr(disk_->model.Sync(path_), path_);
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  const DiskPtr disk_;
  const std::string path_;
};

class Directory final : public rocksdb::FSDirectory {
 public:
  Directory(DiskPtr disk, std::string path) : disk_(std::move(disk)), path_(std::move(path)) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    MutexLock lock(&disk_->mutex);
    return OkOr(disk_->model.SyncFolder(path_), path_);
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  const DiskPtr disk_;
  const std::string path_;
};

class Lock final : public rocksdb::FileLock {};

/// The contents of a file to be read; none when there is no such file.
std::optional<std::string> Copy(const DiskPtr& disk, const std::string& path) {
  MutexLock lock(&disk->mutex);
  const std::string* const contents = disk->model.Contents(Clean(path));
  return contents == nullptr ? std::nullopt : std::optional(*contents);
}

}  // namespace

DiskModel MemoryFileSystem::disk() const {
  MutexLock lock(&disk_->mutex);
  return disk_->model;
}

void MemoryFileSystem::OnChange(std::function<void(const DiskModel&)> before) {
  MutexLock lock(&disk_->mutex);
  disk_->model.OnChange(std::move(before));
}

IOStatus MemoryFileSystem::NewSequentialFile(const std::string& path, const rocksdb::FileOptions&,
                                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                             IODebugContext*) {
  std::optional<std::string> contents = Copy(disk_, path);
  if (!contents.has_value()) return NoSuchFile(path);
  *result = std::make_unique<Sequential>(*std::move(contents));
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions&,
                                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                               IODebugContext*) {
  std::optional<std::string> contents = Copy(disk_, path);
  if (!contents.has_value()) return NoSuchFile(path);
  *result = std::make_unique<RandomAccess>(*std::move(contents));
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::NewWritableFile(const std::string& path, const rocksdb::FileOptions&,
                                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                                           IODebugContext*) {
  {
    MutexLock lock(&disk_->mutex);
    disk_->model.Create(Clean(path));
  }
  *result = std::make_unique<Writable>(disk_, Clean(path));
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::NewRandomRWFile(const std::string& path, const rocksdb::FileOptions&,
                                           std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                           IODebugContext*) {
  if (!Copy(disk_, path).has_value()) return NoSuchFile(path);
  *result = std::make_unique<RandomRW>(disk_, Clean(path));
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::NewDirectory(const std::string& path, const IOOptions&,
                                        std::unique_ptr<rocksdb::FSDirectory>* result,
                                        IODebugContext*) {
  *result = std::make_unique<Directory>(disk_, Clean(path));
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::FileExists(const std::string& path, const IOOptions&, IODebugContext*) {
  MutexLock lock(&disk_->mutex);
  const std::string clean = Clean(path);
  const bool there = disk_->model.IsFile(clean) || disk_->model.IsFolder(clean);
  return there ? IOStatus::OK() : IOStatus::NotFound(path);
}

IOStatus MemoryFileSystem::GetChildren(const std::string& path, const IOOptions&,
                                       std::vector<std::string>* result, IODebugContext*) {
  MutexLock lock(&disk_->mutex);
  if (!disk_->model.IsFolder(Clean(path))) return IOStatus::NotFound(path);
  *result = disk_->model.Children(Clean(path));
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::DeleteFile(const std::string& path, const IOOptions&, IODebugContext*) {
  MutexLock lock(&disk_->mutex);
  return OkOr(disk_->model.Remove(Clean(path)), path);
}

IOStatus MemoryFileSystem::Truncate(const std::string& path, size_t size, const IOOptions&,
                                    IODebugContext*) {
  MutexLock lock(&disk_->mutex);
  return OkOr(disk_->model.Truncate(Clean(path), size), path);
}

IOStatus MemoryFileSystem::CreateDir(const std::string& path, const IOOptions&, IODebugContext*) {
  MutexLock lock(&disk_->mutex);
  const bool made = disk_->model.MakeFolder(Clean(path));
  return made ? IOStatus::OK() : IOStatus::IOError("File exists", path);
}

IOStatus MemoryFileSystem::CreateDirIfMissing(const std::string& path, const IOOptions&,
                                              IODebugContext*) {
  MutexLock lock(&disk_->mutex);
  if (!disk_->model.IsFolder(Clean(path))) disk_->model.MakeFolder(Clean(path));
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::DeleteDir(const std::string& path, const IOOptions&, IODebugContext*) {
  return IOStatus::NotSupported("DeleteDir", path);
}

IOStatus MemoryFileSystem::GetFileSize(const std::string& path, const IOOptions&, uint64_t* size,
                                       IODebugContext*) {
  MutexLock lock(&disk_->mutex);
  const std::string* const contents = disk_->model.Contents(Clean(path));
  if (contents == nullptr) return NoSuchFile(path);
  *size = contents->size();
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::GetFileModificationTime(const std::string&, const IOOptions&,
                                                   uint64_t* time, IODebugContext*) {
  *time = 0;
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::RenameFile(const std::string& from, const std::string& to,
                                      const IOOptions&, IODebugContext*) {
  MutexLock lock(&disk_->mutex);
  return OkOr(disk_->model.Rename(Clean(from), Clean(to)), from);
}

IOStatus MemoryFileSystem::LockFile(const std::string&, const IOOptions&, rocksdb::FileLock** lock,
                                    IODebugContext*) {
  *lock = new Lock;
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) {
  delete static_cast<Lock*>(lock);
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::GetTestDirectory(const IOOptions&, std::string* path, IODebugContext*) {
  *path = "/test";
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::GetAbsolutePath(const std::string& path, const IOOptions&,
                                           std::string* result, IODebugContext*) {
  *result = path;
  return IOStatus::OK();
}

IOStatus MemoryFileSystem::IsDirectory(const std::string& path, const IOOptions&, bool* is_folder,
                                       IODebugContext*) {
  MutexLock lock(&disk_->mutex);
  *is_folder = disk_->model.IsFolder(Clean(path));
  return IOStatus::OK();
}

}  // namespace muster::testing
