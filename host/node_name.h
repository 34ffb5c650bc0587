#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

/// "worker-7".
std::string WorkerName(uint32_t number);
/// None if the name does not have this form.
std::optional<uint32_t> WorkerNumber(const std::string& name);

}  // namespace muster
