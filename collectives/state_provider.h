#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "base/words/types.h"
#include "proto/messages/group_control.h"

namespace muster::collectives {

/// Bytes that are sent from where they are, and what keeps them there unchanged meanwhile.
struct LentBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

/// What a member gives to learners. Called on the listener's thread; must not block.
class StateProvider {
 public:
  virtual ~StateProvider() = default;
  /// All of the stripe of the state that is captured under this label. kNotFound: this process does
  /// not hold it.
  virtual absl::StatusOr<LentBytes> Stripe(StateLabel label, uint32_t stripe) = 0;
  /// The whole sum of the bucket in this step of the lineage. kNotFound as above;
  /// kFailedPrecondition: this process will hold it.
  virtual absl::StatusOr<LentBytes> KeptSum(LineageNumber lineage, StepNumber step,
                                            uint32_t bucket) = 0;
};

}  // namespace muster::collectives
