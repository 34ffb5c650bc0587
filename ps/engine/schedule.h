#pragma once

#include <cstdint>

#include "proto/messages/table_spec.h"

namespace muster::ps {

/// The factor on the learning rate at `step`, the position of a minibatch in the whole job. It is a
/// pure function, so a minibatch that runs again trains with the same rate. docs/optimizers.md has
/// the formulas. Every spec and step give a finite factor if the spec's own factors are finite. A
/// period of 0 counts as 1.
float ScheduleFactor(const ScheduleSpec& schedule, uint64_t step);

}  // namespace muster::ps
