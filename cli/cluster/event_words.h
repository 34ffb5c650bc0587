#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

/// What Kubernetes' events say about an object that makes no progress. Pure, thread-safe functions.
namespace muster::cluster {

/// When an event happened last, in the format of Kubernetes, whose times sort as texts.
std::string TimeOf(const nlohmann::json& event);

/// The text of the newest warning about the object with this UID. Empty if there is none, or if the
/// object has made progress since.
std::string NewestWarning(const std::vector<nlohmann::json>& events, std::string_view uid);

/// Returns `words`. If they say that an object which `muster run` makes for `job` is missing, it
/// adds what helps.
std::string WithAdvice(std::string words, const std::string& job);

/// True if a pod has had a machine for `length` and still has no container. In that case, only
/// events say what it waits for.
bool StartsFor(const nlohmann::json& pod, WallTime now, std::chrono::seconds length);

}  // namespace muster::cluster
