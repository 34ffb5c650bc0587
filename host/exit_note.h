#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "host/messages.h"

namespace muster {

/// Kubernetes keeps this much of a container's termination message.
inline constexpr size_t kExitNoteBytesMax = 4096;

/// The exit of a node, as its container leaves it for the scaler (/dev/termination-log). It is JSON
/// of at most kExitNoteBytesMax bytes, with the exit, the slot, the end of the last words, and the
/// memory figures. It does not contain the node's name and what only the cluster knows
/// (disruption).
std::string ExitNote(const NodeExited& event);

/// Parses such a note. InvalidArgument if the text is not one. Fields that a newer version adds are
/// ignored.
absl::StatusOr<NodeExited> ParseExitNote(std::string_view note);

}  // namespace muster
