#include "scaler/policy/policy.h"

namespace muster::scaler {

void AddPressure(const std::string& name, double percent, Proposal* proposal) {
  if (percent < 0) return;
  proposal->evidence.push_back({name, percent, "%", std::chrono::seconds(10)});
}

}  // namespace muster::scaler
