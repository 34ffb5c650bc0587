#pragma once

#include <rocksdb/env.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_observer.h"
#include "tests/support/power_loss/disk_model.h"

namespace muster::testing {

/// Records, in a DiskModel, what this process does to the files below a folder of this machine:
/// through base/file.h, and through the Env that it lends to RocksDB. The folder itself counts as
/// durable. One at a time; not thread-safe.
class FileRecorder final : public FileObserver {
 public:
  explicit FileRecorder(std::string root, const DiskModel::Faults& faults = {});
  ~FileRecorder() override;

  /// Paths begin below the root: "/a/b".
  DiskModel& disk() { return disk_; }
  rocksdb::Env* env() { return env_.get(); }

  void Create(const std::string& path) override;
  void Write(const std::string& path, uint64_t offset, std::string_view bytes) override;
  void Append(const std::string& path, std::string_view bytes);
  void Sync(const std::string& path) override;
  void Rename(const std::string& from, const std::string& to) override;
  void Link(const std::string& from, const std::string& to) override;
  void Remove(const std::string& path) override;
  void MakeFolder(const std::string& path) override;

 private:
  /// The path below the root.
  std::string Below(const std::string& path) const;

  const std::string root_;
  DiskModel disk_;
  std::unique_ptr<rocksdb::Env> env_;
};

/// Does `work` below `root`, an existing folder, while the power is lost before every change of a
/// file, `losses_each` times, and once more after the work. `check` gets a folder with what is then
/// found in the place of `root`, and says what is wrong with it, "" for nothing; `over`: the work
/// had returned. The complaints, the first ten of them.
std::vector<std::string> LosePower(
    const std::string& root, const DiskModel::Faults& faults, int losses_each,
    const std::function<void(FileRecorder& recorder)>& work,
    const std::function<std::string(const std::string& found, bool over)>& check);

}  // namespace muster::testing
