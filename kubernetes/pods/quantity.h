#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "host/resources.h"

/// Amounts of CPU and memory, as Kubernetes writes them. Pure, thread-safe functions.
namespace muster::kubernetes {

/// The number that "500m", "1.5", "512Mi", "1G" or "12e6" means; nothing if it is no quantity.
std::optional<double> ParseQuantity(std::string_view text);

/// `values` is "requests" or "limits" of a container: {"cpu": "500m", "memory": "512Mi"}. What is
/// missing or is no quantity is 0.
Resources ReadResources(const nlohmann::json& values);

/// The reverse, exactly: processors in thousandths, rounded up, and bytes. A figure of 0 is left
/// out.
nlohmann::json ResourcesJson(const Resources& resources);

}  // namespace muster::kubernetes
