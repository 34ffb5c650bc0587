#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

/// What events of Kubernetes say about an object that does not get on. Pure, thread-safe functions.
namespace muster::cluster {

/// When an event happened last, as Kubernetes writes times, which sort as texts.
std::string TimeOf(const nlohmann::json& event);

/// The words of the newest warning about the object with this UID. Empty: there is none, or the
/// object has got on since.
std::string NewestWarning(const std::vector<nlohmann::json>& events, std::string_view uid);

/// `words`, and what helps if they say that an object is not there that `muster run` makes for
/// `job`.
std::string WithAdvice(std::string words, const std::string& job);

/// Whether a pod has had a machine for `length`, and its container still is not there. Meanwhile
/// only events say what it waits for.
bool StartsFor(const nlohmann::json& pod, WallTime now, std::chrono::seconds length);

}  // namespace muster::cluster
