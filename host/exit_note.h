#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "host/messages.h"

namespace muster {

/// What Kubernetes keeps of a container's last message.
inline constexpr size_t kExitNoteBytesMax = 4096;

/// The exit of a node as its container leaves it for the scaler (/dev/termination-log): JSON of at
/// most kExitNoteBytesMax bytes, with the exit, the slot, the end of its last words, and the
/// figures of its memory. What the cluster knows (disruption) and the node's name are not in it.
std::string ExitNote(const NodeExited& event);

/// The other way. InvalidArgument if it is no such note. Fields that a newer version adds are
/// ignored.
absl::StatusOr<NodeExited> ParseExitNote(std::string_view note);

}  // namespace muster
