#pragma once

#include <atomic>

#include "collectives/backend.h"

namespace muster::collectives::testing {

/// The end of an attempt, as a test says it.
class Signal final : public AbortSignal {
 public:
  bool aborted() const override { return aborted_.load(); }
  void Set() { aborted_.store(true); }

 private:
  std::atomic<bool> aborted_{false};
};

}  // namespace muster::collectives::testing
