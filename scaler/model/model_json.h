#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "proto/fields/json.h"
#include "scaler/model/model.h"

namespace muster::scaler::rest {

/// {"Job": {...}, ...}: JSON Schema (2020-12) of every document of model.h and of what they consist
/// of, as `components/schemas` of OpenAPI 3.1 has them.
nlohmann::json ModelSchemas();

/// One line; text that is no valid UTF-8 is repaired instead of refused.
std::string Dump(const nlohmann::json& json);

}  // namespace muster::scaler::rest
