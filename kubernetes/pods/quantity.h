#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "host/resources.h"

/// Amounts of CPU and memory in Kubernetes' notation. Pure, thread-safe functions.
namespace muster::kubernetes {

/// Parses "500m", "1.5", "512Mi", "1G" or "12e6". None if the text is no quantity.
std::optional<double> ParseQuantity(std::string_view text);

/// `values` is "requests" or "limits" of a container: {"cpu": "500m", "memory": "512Mi"}. A value
/// that is missing or is no quantity is 0.
Resources ReadResources(const nlohmann::json& values);

/// The exact reverse: CPU in thousandths, rounded up, and bytes. A figure of 0 is left out.
nlohmann::json ResourcesJson(const Resources& resources);

}  // namespace muster::kubernetes
