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

/// `shown` is the object for people, and ends with its name; `path` is its local file.
absl::StatusOr<PartitionImage> ReadImage(const std::string& path, const std::string& shown,
                                         PartitionId partition, uint64_t bytes) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t found, FileBytes(path));
  if (found != bytes) {
    return absl::DataLossError(
        fmt::format("{} has {} bytes, but was written with {}: it was truncated or replaced", shown,
                    found, bytes));
  }
  // Checked before RocksDB reads it. Debian's RocksDB is built with assertions, so a damaged footer
  // could end this process.
  MUSTER_ASSIGN_OR_RETURN(const uint64_t hash, HashOfFile(path));
  if (!shown.ends_with(HashSuffix(hash))) {
    return absl::DataLossError(
        fmt::format("{} is damaged: its checksum is not the one in its name", shown));
  }
  ImageDecoder decoder;
  MUSTER_RETURN_IF_ERROR_PREPEND(
      ReadSst(path, [&](std::string_view key,
                        std::string_view value) { return decoder.Add(key, value); }),
      shown);
  absl::StatusOr<PartitionImage> image = decoder.Finish();
  if (!image.ok()) return Annotate(image.status(), shown);
  const SnapshotIdentity& identity = decoder.identity();
  const std::string name =
      SnapshotFileName(identity.partition, identity.epoch, identity.number, image->kind, hash);
  if (identity.partition != partition || !shown.ends_with(name)) {
    return absl::DataLossError(
        fmt::format("{} contains {}, which belongs to another file: files were exchanged", shown,
                    ToString(identity)));
  }
  return image;
}

/// The error of file `i` of a manifest, with what to do.
absl::Status ChainError(const ObjectStore& store, PartitionId partition, const Manifest& manifest,
                        size_t i, const absl::Status& status) {
  const bool lost = absl::IsNotFound(status) || absl::IsDataLoss(status);
  std::string text =
      fmt::format("snapshot {} of partition {} (file {} of {}): {}", ToString(manifest.number),
                  partition.value(), i + 1, manifest.files.size(), Message(status));
  if (lost) {
    text +=
        fmt::format("; put the file back as it was, for example from a copy of {}", store.place());
  }
  return absl::Status(lost ? absl::StatusCode::kDataLoss : status.code(), text);
}

}  // namespace

std::string SnapshotFileName(PartitionId partition, OwnerEpoch epoch, SnapshotNumber number,
                             SnapshotKind kind, uint64_t hash) {
  return fmt::format("p{:05}/e{}-s{}-{}{}", partition.value(), epoch.value(), ToString(number),
                     kind == SnapshotKind::kBase ? "base" : "delta", HashSuffix(hash));
}

absl::StatusOr<SnapshotFile> WriteSnapshot(ObjectStore* store, PartitionId partition,
                                           OwnerEpoch epoch, SnapshotNumber number,
                                           const PartitionImage& image, rocksdb::Env* env) {
  MUSTER_ASSIGN_OR_RETURN(LocalFile staged,
                          store->Stage(fmt::format("p{:05}/e{}-s{}.tmp", partition.value(),
                                                   epoch.value(), ToString(number))));
  MUSTER_FAILPOINT_OR_RETURN("snapshot.before-write");
  MUSTER_ASSIGN_OR_RETURN(const SstFile written,
                          WriteImage(staged.path(), {partition, epoch, number}, image, env));
  SnapshotFile file;
  file.bytes = written.bytes;
  file.name = SnapshotFileName(partition, epoch, number, image.kind, written.hash);
  MUSTER_RETURN_IF_ERROR(store->Publish(std::move(staged), file.name));
  return file;
}

absl::StatusOr<std::vector<LocalFile>> FetchChain(ObjectStore* store, PartitionId partition,
                                                  const Manifest& manifest) {
  std::vector<LocalFile> files;
  for (size_t i = 0; i < manifest.files.size(); ++i) {
    const SnapshotFile& file = manifest.files[i];
    if (!StaysBelow(file.name)) {
      return absl::InvalidArgumentError(
          fmt::format("snapshot {} of partition {} lists the file '{}', which is not below the "
                      "snapshot directory",
                      ToString(manifest.number), partition.value(), file.name));
    }
    MUSTER_FAILPOINT_OR_RETURN("restore.before-file");
    absl::StatusOr<LocalFile> local = store->Fetch(file.name);
    if (!local.ok()) return ChainError(*store, partition, manifest, i, local.status());
    files.push_back(*std::move(local));
  }
  return files;
}

absl::StatusOr<std::vector<PartitionImage>> ReadChain(const ObjectStore& store,
                                                      PartitionId partition,
                                                      const Manifest& manifest,
                                                      const std::vector<LocalFile>& files) {
  std::vector<PartitionImage> images;
  for (size_t i = 0; i < files.size(); ++i) {
    const SnapshotFile& file = manifest.files[i];
    absl::StatusOr<PartitionImage> image =
        ReadImage(files[i].path(), store.Shown(file.name), partition, file.bytes);
    if (!image.ok()) return ChainError(store, partition, manifest, i, image.status());
    images.push_back(*std::move(image));
    MUSTER_FAILPOINT_OR_RETURN("restore.after-file");
  }
  return images;
}

absl::StatusOr<std::vector<PartitionImage>> ReadChain(ObjectStore* store, PartitionId partition,
                                                      const Manifest& manifest) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<LocalFile> files,
                          FetchChain(store, partition, manifest));
  return ReadChain(*store, partition, manifest, files);
}

}  // namespace muster::ps
