#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// How long Kubernetes waits before it starts the job's own pod again. Pure, thread-safe functions.
namespace muster::cluster {

/// The wait after this many deaths of the Job's pods, from 1. It is 10 s after the first death and
/// doubles with each further one, up to 10 minutes. Source: `DefaultJobPodFailureBackOff` and
/// `MaxJobPodFailureBackOff` of Kubernetes' Job controller. No field of a Job changes them.
std::chrono::seconds BackOffAfter(int64_t deaths);

/// Says when the next pod comes: "Kubernetes starts the next one at about 2026-01-31T12:34:56Z
/// (...)". That is the end of the newest of `pods` plus the wait. Requires: the Job is not over,
/// and all its pods are.
std::string NextStart(const nlohmann::json& job, const std::vector<nlohmann::json>& pods);

}  // namespace muster::cluster
