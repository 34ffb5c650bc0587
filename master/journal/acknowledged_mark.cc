#include "master/journal/acknowledged_mark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "master/journal/rocksdb_status.h"

namespace muster {
namespace {

/// Two slots in two sectors, written in turn. A torn write damages only one; the other is older by
/// one.
constexpr uint64_t kSlotDistance = 4096;
constexpr uint64_t kSlots = 2;
constexpr uint64_t kSalt = 0x4d55535445524d4bULL;

struct Slot {
  uint64_t batch = 0;
  uint64_t checksum = 0;
  bool valid() const { return checksum == HashWords(batch, kSalt); }
};
static_assert(sizeof(Slot) == 16);

/// A file in which both slots say the same.
std::string EncodeFile(uint64_t batch) {
  const Slot slot{batch, HashWords(batch, kSalt)};
  std::string bytes(kSlots * kSlotDistance, '\0');
  for (uint64_t i = 0; i < kSlots; ++i) {
    std::memcpy(bytes.data() + i * kSlotDistance, &slot, sizeof(slot));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::optional<uint64_t>> AcknowledgedMark::Read(rocksdb::Env* env,
                                                               const std::string& directory) {
  const std::string path = PathIn(directory);
  if (env->FileExists(path).IsNotFound()) return std::nullopt;
  std::string bytes;
  MUSTER_RETURN_IF_ERROR(JournalStatus(rocksdb::ReadFileToString(env, path, &bytes), directory));
  uint64_t newest = 0;
  bool any_valid = false;
  for (uint64_t i = 0; i < kSlots; ++i) {
    Slot slot;
    const size_t begin = std::min<size_t>(i * kSlotDistance, bytes.size());
    const size_t size = std::min(bytes.size() - begin, sizeof(slot));
    std::memcpy(&slot, bytes.data() + begin, size);
    if (!slot.valid()) continue;
    newest = std::max(newest, slot.batch);
    any_valid = true;
  }
  if (!any_valid) {
    return absl::DataLossError(fmt::format(
        "{} is damaged. It says which batch of the journal in this folder was acknowledged last. "
        "Put it back as it was. If you are sure that the rest of the folder is complete, delete it",
        path));
  }
  return newest;
}

absl::StatusOr<std::unique_ptr<AcknowledgedMark>> AcknowledgedMark::Open(
    rocksdb::Env* env, const std::string& directory, uint64_t batch) {
  const std::string path = PathIn(directory);
  if (env->FileExists(path).IsNotFound()) {
    const std::string temporary = path + ".tmp";
    MUSTER_RETURN_IF_ERROR(JournalStatus(
        rocksdb::WriteStringToFile(env, EncodeFile(batch), temporary, /*should_sync=*/true),
        directory));
    MUSTER_RETURN_IF_ERROR(JournalStatus(env->RenameFile(temporary, path), directory));
    std::unique_ptr<rocksdb::Directory> folder;
    MUSTER_RETURN_IF_ERROR(JournalStatus(env->NewDirectory(directory, &folder), directory));
    MUSTER_RETURN_IF_ERROR(JournalStatus(folder->Fsync(), directory));
  }
  std::unique_ptr<rocksdb::RandomRWFile> file;
  MUSTER_RETURN_IF_ERROR(
      JournalStatus(env->NewRandomRWFile(path, &file, rocksdb::EnvOptions()), directory));
  std::unique_ptr<AcknowledgedMark> mark(new AcknowledgedMark(directory, std::move(file)));
  MUSTER_RETURN_IF_ERROR(mark->Write(batch));
  MUSTER_RETURN_IF_ERROR(mark->Sync());
  return mark;
}

absl::Status AcknowledgedMark::Write(uint64_t batch) {
  const Slot slot{batch, HashWords(batch, kSalt)};
  return JournalStatus(
      file_->Write(batch % kSlots * kSlotDistance,
                   rocksdb::Slice(reinterpret_cast<const char*>(&slot), sizeof(slot))),
      directory_);
}

absl::Status AcknowledgedMark::Sync() {
  return JournalStatus(file_->Sync(), directory_);
}

}  // namespace muster
