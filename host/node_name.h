#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

/// "worker-7".
std::string WorkerName(uint32_t number);
/// None when the name is not of that form.
std::optional<uint32_t> WorkerNumber(const std::string& name);

}  // namespace muster
