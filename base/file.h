#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

/// Reads a whole file of at most `bytes_max` bytes. Errors name the path.
absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t bytes_max);

/// Who may read a new file.
enum class FileAccess {
  kUmask,      // according to the user's umask
  kOwnerOnly,  // mode 0600: secrets
};

/// Writes `contents` to the path. After a crash, the file has either all of the old contents or all
/// of the new ones. For this, it writes a temporary file beside it, syncs that, renames it, and
/// syncs the folder. Errors (for example a full disk) name the path and leave the old file.
absl::Status WriteFileAtomically(const std::string& path, std::string_view contents,
                                 FileAccess access = FileAccess::kUmask);

/// Calls fsync for a file or a folder.
absl::Status SyncPath(const std::string& path);

/// Calls rename(2), which replaces `to` in one step. It is durable when the folder is synced.
/// Errors name both paths.
absl::Status RenamePath(const std::string& from, const std::string& to);

/// Calls link(2), which gives the file a second name. kAlreadyExists if `to` exists. It is durable
/// when the folder is synced.
absl::Status LinkPath(const std::string& from, const std::string& to);

/// Removes a file. If it does not exist or cannot be removed, nothing happens.
void RemoveFile(const std::string& path);

/// Calls mkdir. True if it made the folder, false if that existed. It is durable when the parent is
/// synced.
absl::StatusOr<bool> MakeDirectory(const std::string& path);

/// Like mkdir -p. The entries of new folders are durable.
absl::Status MakeDirectories(const std::string& path);

/// The folder for temporary files: that of the environment, else /tmp.
std::string TemporaryFolder();

/// Makes a new folder in `parent` that only its owner may use. Its name begins with `name`.
absl::StatusOr<std::string> MakePrivateFolder(const std::string& parent, std::string_view name);

/// Only the owner may use the folder from now on.
absl::Status MakePrivate(const std::string& folder);

/// A file being written at any position, made when it does not exist. SyncPath makes it durable.
/// Errors name its path. Movable, not copyable.
class OutputFile {
 public:
  static absl::StatusOr<OutputFile> Open(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();
  absl::Status WriteAt(uint64_t offset, std::string_view bytes);
  /// Makes the system write these bytes to the device now, and waits for it. This does not make
  /// them durable; SyncPath does. Call it piece by piece when you write much, so that the sync of
  /// another file on the device does not wait for all of it.
  void WriteBack(uint64_t offset, uint64_t bytes);

 private:
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

/// A file that is read at any position. Errors name its path. Movable, not copyable.
class InputFile {
 public:
  static absl::StatusOr<InputFile> Open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();
  /// Fills `into`, unless the file ends before. Returns how many bytes there were.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) const;

 private:
  InputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

/// A read-only memory map of a file. The view of an empty file is empty. Movable, not copyable.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace muster
