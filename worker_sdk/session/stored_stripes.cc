#include "worker_sdk/session/stored_stripes.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace muster::internal {
namespace {

/// The master's journal may be on the same device, and every step waits for its sync.
constexpr size_t kPieceBytes = size_t{4} << 20;

/// The name comes from the network: it has no part that leads out of the place.
absl::Status CheckObject(std::string_view object) {
  if (!object.empty() && object.front() != '/' && object.find("..") == std::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("the master names a piece of the state \"{}\"", object));
}

}  // namespace

absl::Status StoreStripe(ObjectStore* store, const std::string& object,
                         std::span<const std::byte> bytes) {
  MUSTER_RETURN_IF_ERROR(CheckObject(object));
  MUSTER_ASSIGN_OR_RETURN(LocalFile staged, store->Stage(object + ".tmp"));
  MUSTER_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(staged.path()));
  const std::string_view contents(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (size_t offset = 0; offset < contents.size(); offset += kPieceBytes) {
    const std::string_view piece = contents.substr(offset, kPieceBytes);
    MUSTER_RETURN_IF_ERROR(file.WriteAt(offset, piece));
    file.WriteBack(offset, piece.size());
  }
  MUSTER_RETURN_IF_ERROR(SyncPath(staged.path()));
  return store->Publish(std::move(staged), object);
}

absl::StatusOr<std::string> LoadStripe(ObjectStore* store, const std::string& object,
                                       uint64_t bytes) {
  MUSTER_RETURN_IF_ERROR(CheckObject(object));
  MUSTER_ASSIGN_OR_RETURN(const LocalFile fetched, store->Fetch(object));
  MUSTER_ASSIGN_OR_RETURN(std::string contents, ReadFile(fetched.path(), bytes));
  if (contents.size() == bytes) return contents;
  return absl::DataLossError(
      fmt::format("{} has {} bytes instead of {}", store->Shown(object), contents.size(), bytes));
}

}  // namespace muster::internal
