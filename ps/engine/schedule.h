#pragma once

#include <cstdint>

#include "proto/messages/table_spec.h"

namespace muster::ps {

/// The factor on the learning rate at `step`, the job-wide position of a minibatch: a pure
/// function, so that a re-run minibatch trains with the same rate. docs/optimizers.md has the
/// formulas. Total: any spec and step give a finite factor when the spec's own factors are finite;
/// a period of 0 counts as 1.
float ScheduleFactor(const ScheduleSpec& schedule, uint64_t step);

}  // namespace muster::ps
