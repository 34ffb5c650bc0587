#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "collectives/state_provider.h"
#include "worker_sdk/member/step_totals.h"

namespace muster::internal {

/// The applied sums that other members may ask for. Not thread-safe.
class KeptTotals {
 public:
  void Add(std::shared_ptr<StepTotals> sums) {
    sums->DropFloats();
    kept_.push_back(std::move(sums));
  }
  /// Only those of this lineage and of later steps stay; absent: none.
  void Prune(LineageNumber lineage, std::optional<StepNumber> after) {
    std::erase_if(kept_, [&](const std::shared_ptr<StepTotals>& sums) {
      return !after.has_value() || sums->after.step <= *after || sums->after.lineage != lineage;
    });
  }
  /// The sum of a block; the facts of the step have the number after the last one. kNotFound: it is
  /// not kept.
  absl::StatusOr<collectives::LentBytes> Find(StateLabel after, uint32_t block,
                                              size_t blocks) const {
    for (const std::shared_ptr<StepTotals>& sums : kept_) {
      if (sums->after != after) continue;
      if (block == blocks) return collectives::LentBytes{sums, sums->facts.bytes()};
      if (block < sums->size()) return collectives::LentBytes{sums, sums->encoded(block)};
    }
    return absl::NotFoundError("this member does not keep that sum");
  }

 private:
  std::vector<std::shared_ptr<StepTotals>> kept_;
};

}  // namespace muster::internal
