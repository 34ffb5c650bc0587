#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/object_store.h"

/// Stored pieces of a group's state: objects of the job's snapshot place, which all machines of the
/// job see. Blocking. Thread-safe. Errors name the object.
namespace muster::internal {

/// Writes the object, so that it is there whole and durable, or not at all. An object of the same
/// name is replaced.
absl::Status StoreStripe(ObjectStore* store, const std::string& object,
                         std::span<const std::byte> bytes);
/// The contents of the object. kDataLoss: it has another size.
absl::StatusOr<std::string> LoadStripe(ObjectStore* store, const std::string& object,
                                       uint64_t bytes);

}  // namespace muster::internal
