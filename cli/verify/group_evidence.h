#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "cli/verify/evidence.h"
#include "cli/verify/storm.h"
#include "cli/verify/verify_job.h"
#include "proto/status/job_status.h"

namespace muster::verify {

/// Reads what the two runs of a group's job have left, and compares them with each other and with
/// their input. Errors say what could not be read.
absl::StatusOr<Judgement> JudgeGroup(const VerifyJob& undisturbed, const VerifyJob& job,
                                     const StormResult& storm);

/// How often the master's events say that the group changed or went back. Pure.
GroupChanges ChangesIn(const MasterEvents& events);

}  // namespace muster::verify
