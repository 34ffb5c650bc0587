#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Stored pieces of a group's state: files below the job's snapshot directory, which all machines
/// of the job see. Blocking. Errors name the path.
namespace muster::internal {

/// Writes the object, so that it is there whole and durable, or not at all.
absl::Status StoreStripe(const std::string& directory, const std::string& object,
                         std::span<const std::byte> bytes);
/// The contents of the object. kDataLoss: it has another size.
absl::StatusOr<std::string> LoadStripe(const std::string& directory, const std::string& object,
                                       uint64_t bytes);

}  // namespace muster::internal
