#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "proto/fields/json.h"
#include "scaler/model/model.h"

namespace muster::scaler::rest {

/// JSON Schema (2020-12) of every document of model.h and of its parts: {"Job": {...}, ...}.
/// `components/schemas` of OpenAPI 3.1 has this form.
nlohmann::json ModelSchemas();

/// Returns JSON in one line. Text that is not valid UTF-8 is repaired.
std::string Dump(const nlohmann::json& json);

}  // namespace muster::scaler::rest
