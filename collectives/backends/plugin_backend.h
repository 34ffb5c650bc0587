#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collectives/backend.h"

namespace muster::collectives {

/// A shared library with the interface of muster/collective_plugin.h. It sees its own symbols
/// before those of the program, so that it may bring other versions of libraries.
///
/// kNotFound: it cannot be loaded; kUnimplemented: it is no plugin, or one of another version;
/// kInvalidArgument: its functions or its name are missing.
absl::StatusOr<std::shared_ptr<Backend>> OpenPlugin(const std::string& library);

}  // namespace muster::collectives
