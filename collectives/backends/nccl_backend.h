#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collectives/backend.h"

namespace muster::collectives {

struct NcclOptions {
  /// Of CUDA, counted from 0.
  int32_t device = 0;
  /// NCCL's file, or a name that the dynamic linker finds. A library that the process has loaded
  /// already, for example PyTorch's, is found by that name.
  std::string library = "libnccl.so.2";
  std::string cuda = "libcuda.so.1";
  /// How long the members may take to connect. They all begin soon after each other, so a longer
  /// time means that something is wrong.
  std::chrono::seconds connect_timeout{120};
  /// A member that dies breaks NCCL's connections, often before this process knows of the death. So
  /// an error of NCCL is returned only if the attempt does not end within this time.
  std::chrono::milliseconds error_patience{30'000};
};

/// NCCL 2.14 or later. Its communicators do not block, so a thread that waits for others sees an
/// abort at once, and ends the communicator (ncclCommAbort). Each attempt has a communicator of its
/// own: NCCL cannot order the members of a changed group as the attempt does.
///
/// kNotFound: NCCL or CUDA's driver cannot be loaded; kUnimplemented: NCCL is too old;
/// kFailedPrecondition: there is no such device.
absl::StatusOr<std::shared_ptr<Backend>> OpenNccl(const NcclOptions& options);

}  // namespace muster::collectives
