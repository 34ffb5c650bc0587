#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// How long Kubernetes waits before it starts the job's own pod again. Pure, thread-safe functions.
namespace muster::cluster {

/// The wait after so many deaths of the Job's pods, from 1: 10 s, and twice as long each time, at
/// most 10 minutes. Source: `DefaultJobPodFailureBackOff` and `MaxJobPodFailureBackOff` of
/// Kubernetes' Job controller, which no field of a Job changes.
std::chrono::seconds BackOffAfter(int64_t deaths);

/// "Kubernetes starts the next one at about 2026-01-31T12:34:56Z (...)": the end of the newest of
/// `pods`, and the wait. For a Job that is not over and has no pod that is not over.
std::string NextStart(const nlohmann::json& job, const std::vector<nlohmann::json>& pods);

}  // namespace muster::cluster
