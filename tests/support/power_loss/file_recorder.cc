#include "tests/support/power_loss/file_recorder.h"

#include <fmt/format.h>
#include <rocksdb/file_system.h>

#include <filesystem>
#include <utility>

#include "tests/support/temp_dir.h"

namespace muster::testing {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

/// A file of this machine that RocksDB writes.
class RecordedFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  RecordedFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path,
               FileRecorder* recorder)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(std::move(path)), recorder_(recorder) {}
  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    recorder_->Append(path_, {data.data(), data.size()});
    return target()->Append(data, options, dbg);
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* dbg) override {
    return Append(data, options, dbg);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    recorder_->Sync(path_);
    return target()->Sync(options, dbg);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return Sync(options, dbg);
  }

 private:
  const std::string path_;
  FileRecorder* const recorder_;
};

class RecordedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit RecordedFileSystem(FileRecorder* recorder)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), recorder_(recorder) {}
  const char* Name() const override { return "RecordedFileSystem"; }
  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* dbg) override {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    IOStatus status = target()->NewWritableFile(path, options, &file, dbg);
    if (!status.ok()) return status;
    recorder_->Create(path);
    *result = std::make_unique<RecordedFile>(std::move(file), path, recorder_);
    return status;
  }

 private:
  FileRecorder* const recorder_;
};

}  // namespace

FileRecorder::FileRecorder(std::string root, const DiskModel::Faults& faults)
    : root_(std::move(root)),
      disk_(faults),
      env_(rocksdb::NewCompositeEnv(std::make_shared<RecordedFileSystem>(this))) {
  ObserveFiles(this);
}

FileRecorder::~FileRecorder() {
  ObserveFiles(nullptr);
}

std::string FileRecorder::Below(const std::string& path) const {
  if (!path.starts_with(root_)) return "/elsewhere" + path;
  std::string below = path.substr(root_.size());
  while (below.size() > 1 && below.back() == '/') below.pop_back();
  return below.empty() ? "/" : below;
}

void FileRecorder::Create(const std::string& path) {
  disk_.Create(Below(path));
}

void FileRecorder::Write(const std::string& path, uint64_t offset, std::string_view bytes) {
  disk_.Write(Below(path), offset, bytes);
}

void FileRecorder::Append(const std::string& path, std::string_view bytes) {
  disk_.Append(Below(path), bytes);
}

void FileRecorder::Sync(const std::string& path) {
  const std::string below = Below(path);
  if (below == "/" || disk_.IsFolder(below)) {
    disk_.SyncFolder(below);
  } else {
    disk_.Sync(below);
  }
}

void FileRecorder::Rename(const std::string& from, const std::string& to) {
  disk_.Rename(Below(from), Below(to));
}

void FileRecorder::Link(const std::string& from, const std::string& to) {
  disk_.Link(Below(from), Below(to));
}

void FileRecorder::Remove(const std::string& path) {
  disk_.Remove(Below(path));
}

void FileRecorder::MakeFolder(const std::string& path) {
  disk_.MakeFolder(Below(path));
}

std::vector<std::string> LosePower(
    const std::string& root, const DiskModel::Faults& faults, int losses_each,
    const std::function<void(FileRecorder& recorder)>& work,
    const std::function<std::string(const std::string& found, bool over)>& check) {
  constexpr size_t kComplaintsMax = 10;
  std::vector<std::string> complaints;
  Rng rng(1);
  int changes = 0;
  const auto lose = [&](const DiskModel& disk, bool over) {
    for (int i = 0; i < losses_each && complaints.size() < kComplaintsMax; ++i) {
      const TempDir found;
      disk.AfterPowerLoss(&rng).WriteTo(found.path());
      if (std::string wrong = check(found.path(), over); !wrong.empty()) {
        complaints.push_back(fmt::format("change {}, loss {}: {}", changes, i, wrong));
      }
    }
    ++changes;
  };
  FileRecorder recorder(root, faults);
  recorder.disk().OnChange([&](const DiskModel& disk) { lose(disk, false); });
  work(recorder);
  recorder.disk().OnChange(nullptr);
  lose(recorder.disk(), true);
  return complaints;
}

}  // namespace muster::testing
