#include "ps/snapshot/snapshot.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <cerrno>
#include <filesystem>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "ps/snapshot/image_codec.h"
#include "ps/snapshot/sst_file.h"

namespace muster::ps {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<uint64_t> FileBytes(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, path);
  return static_cast<uint64_t>(info.st_size);
}

absl::StatusOr<SstFile> WriteImage(const std::string& path, const SnapshotIdentity& identity,
                                   const PartitionImage& image, rocksdb::Env* env) {
  const Blocks blocks = HasManyRepeats(image) ? Blocks::kCompressed : Blocks::kPlain;
  absl::StatusOr<SstFile> file =
      WriteSst(path, [&](PutEntry put) { return EncodeImage(identity, image, put); }, blocks, env);
  if (absl::IsResourceExhausted(file.status())) {
    return Annotate(file.status(),
                    "there is no space for a snapshot; free some space. Training continues");
  }
  return file;
}

std::string HashSuffix(uint64_t hash) {
  return fmt::format("-{:016x}.sst", hash);
}

/// A manifest comes over the wire, so its names must not lead out of the snapshot directory.
bool StaysBelow(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const fs::path& element : path) {
    if (element == "..") return false;
  }
  return true;
}

absl::StatusOr<uint64_t> HashOfFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return static_cast<uint64_t>(XXH3_64bits(file.bytes().data(), file.bytes().size()));
}

absl::StatusOr<PartitionImage> ReadImage(const std::string& path, PartitionId partition,
                                         uint64_t bytes) {
  const absl::StatusOr<uint64_t> found = FileBytes(path);
  if (!found.ok()) return absl::DataLossError(fmt::format("{}", Message(found.status())));
  if (*found != bytes) {
    return absl::DataLossError(
        fmt::format("{} has {} bytes, but was written with {}: it was truncated or replaced", path,
                    *found, bytes));
  }
  // Checked before RocksDB reads it. Debian's RocksDB is built with assertions, so a damaged footer
  // could end this process.
  MUSTER_ASSIGN_OR_RETURN(const uint64_t hash, HashOfFile(path));
  if (!path.ends_with(HashSuffix(hash))) {
    return absl::DataLossError(
        fmt::format("{} is damaged: its checksum is not the one in its name", path));
  }
  ImageDecoder decoder;
  MUSTER_RETURN_IF_ERROR_PREPEND(
      ReadSst(path, [&](std::string_view key,
                        std::string_view value) { return decoder.Add(key, value); }),
      path);
  absl::StatusOr<PartitionImage> image = decoder.Finish();
  if (!image.ok()) return Annotate(image.status(), path);
  const SnapshotIdentity& identity = decoder.identity();
  const std::string name =
      SnapshotFileName(identity.partition, identity.epoch, identity.number, image->kind, hash);
  if (identity.partition != partition || !path.ends_with(name)) {
    return absl::DataLossError(
        fmt::format("{} contains {}, which belongs to another file: files were exchanged", path,
                    ToString(identity)));
  }
  return image;
}

/// Does everything except the removal of `temporary` after a failure.
absl::StatusOr<SnapshotFile> WriteFile(const std::string& directory, const std::string& temporary,
                                       const SnapshotIdentity& identity,
                                       const PartitionImage& image, rocksdb::Env* env) {
  MUSTER_ASSIGN_OR_RETURN(const SstFile written, WriteImage(temporary, identity, image, env));
  SnapshotFile file;
  file.bytes = written.bytes;
  file.name = SnapshotFileName(identity.partition, identity.epoch, identity.number, image.kind,
                               written.hash);
  const std::string path = directory + "/" + file.name;
  MUSTER_FAILPOINT_OR_RETURN("snapshot.before-rename");
  MUSTER_RETURN_IF_ERROR(RenamePath(temporary, path));
  absl::Status synced = MUSTER_FAILPOINT_STATUS("snapshot.after-rename");
  if (synced.ok()) synced = SyncPath(fs::path(path).parent_path().string());
  if (synced.ok()) synced = MUSTER_FAILPOINT_STATUS("snapshot.after-folder-sync");
  if (!synced.ok()) {
    MUSTER_FAILPOINT("snapshot.before-withdraw");
    RemoveFile(path);  // no report names it
    return synced;
  }
  return file;
}

}  // namespace

std::string SnapshotFileName(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number,
                             SnapshotKind kind, uint64_t hash) {
  return fmt::format("p{:05}/e{}-s{}-{}{}", partition.value(), epoch.value(), ToString(number),
                     kind == SnapshotKind::kBase ? "base" : "delta", HashSuffix(hash));
}

absl::StatusOr<SnapshotFile> WriteSnapshot(const std::string& directory, PartitionId partition,
                                           OwnerEpoch epoch, SnapshotNumber number,
                                           const PartitionImage& image, rocksdb::Env* env) {
  const std::string temporary = fmt::format("{}/p{:05}/e{}-s{}.tmp", directory, partition.value(),
                                            epoch.value(), ToString(number));
  const std::string folder = fs::path(temporary).parent_path().string();
  MUSTER_FAILPOINT_OR_RETURN("snapshot.before-folder");
  MUSTER_RETURN_IF_ERROR(MakeDirectories(folder));
  MUSTER_FAILPOINT_OR_RETURN("snapshot.before-write");
  absl::StatusOr<SnapshotFile> file =
      WriteFile(directory, temporary, {partition, epoch, number}, image, env);
  if (!file.ok()) {
    MUSTER_FAILPOINT("snapshot.before-remove");
    RemoveFile(temporary);
  }
  return file;
}

absl::StatusOr<std::vector<PartitionImage>> ReadChain(const std::string& directory,
                                                      PartitionId partition,
                                                      const Manifest& manifest) {
  std::vector<PartitionImage> images;
  for (size_t i = 0; i < manifest.files.size(); ++i) {
    const SnapshotFile& file = manifest.files[i];
    if (!StaysBelow(file.name)) {
      return absl::InvalidArgumentError(
          fmt::format("snapshot {} of partition {} lists the file '{}', which is not below the "
                      "snapshot directory",
                      ToString(manifest.number), partition.value(), file.name));
    }
    MUSTER_FAILPOINT_OR_RETURN("restore.before-file");
    absl::StatusOr<PartitionImage> image =
        ReadImage(directory + "/" + file.name, partition, file.bytes);
    if (!image.ok()) {
      return absl::Status(
          image.status().code(),
          fmt::format("snapshot {} of partition {} (file {} of {}): {}; put the file back as it "
                      "was, for example from a copy of {}",
                      ToString(manifest.number), partition.value(), i + 1, manifest.files.size(),
                      Message(image.status()), directory));
    }
    images.push_back(*std::move(image));
    MUSTER_FAILPOINT_OR_RETURN("restore.after-file");
  }
  return images;
}

}  // namespace muster::ps
