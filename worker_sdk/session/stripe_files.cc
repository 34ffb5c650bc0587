#include "worker_sdk/session/stripe_files.h"

#include <fmt/format.h>

#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace muster::internal {
namespace {

/// The name comes from the network: it has no part that leads out of the folder.
absl::Status CheckObject(std::string_view object) {
  if (!object.empty() && object.front() != '/' && object.find("..") == std::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("the master names a piece of the state \"{}\"", object));
}

}  // namespace

absl::Status StoreStripe(const std::string& directory, const std::string& object,
                         std::span<const std::byte> bytes) {
  MUSTER_RETURN_IF_ERROR(CheckObject(object));
  const std::string path = directory + "/" + object;
  MUSTER_RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/'))));
  return WriteFileAtomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

absl::StatusOr<std::string> LoadStripe(const std::string& directory, const std::string& object,
                                       uint64_t bytes) {
  MUSTER_RETURN_IF_ERROR(CheckObject(object));
  const std::string path = directory + "/" + object;
  MUSTER_ASSIGN_OR_RETURN(std::string contents, ReadFile(path, bytes));
  if (contents.size() == bytes) return contents;
  return absl::DataLossError(
      fmt::format("{} has {} bytes instead of {}", path, contents.size(), bytes));
}

}  // namespace muster::internal
