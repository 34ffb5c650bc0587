#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptors.h"

/// Operations on single files and folders of control groups. Errors name the path.
namespace muster {

/// Version 1 shows "no limit" as the largest number of whole pages.
inline constexpr uint64_t kNoLimit = uint64_t{1} << 60;

/// Writes with one write, as the kernel requires. A missing file is an error; nothing is created.
absl::Status WriteControl(const std::string& path, std::string_view value);
/// "max" is kNoLimit.
absl::StatusOr<uint64_t> ReadNumber(const std::string& path);

/// OK if the group exists already.
absl::Status MakeGroup(const std::string& path);
/// OK if the group does not exist. FailedPrecondition while it has processes.
absl::Status RemoveGroup(const std::string& path);
/// Kills (SIGKILL) the processes of a group and waits until they are gone, for at most a second.
void KillGroup(const std::string& path);
/// The names of the groups in a group. Empty if the group does not exist.
std::vector<std::string> GroupsIn(const std::string& path);

/// Creates a group and locks it. IsLocked() is true as long as any process has the descriptor open.
/// Several processes may lock the same group.
absl::StatusOr<OwnedFd> MakeLockedGroup(const std::string& path);
/// True if any process, also this one, has a lock on it.
bool IsLocked(const std::string& path);

}  // namespace muster
