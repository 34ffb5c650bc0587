#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "scaler/rest/router.h"

/// The interface's own description, written from the table of routes and the model. Pure.
namespace muster::scaler::rest {

/// Source: OpenAPI Specification 3.1.0.
nlohmann::json OpenApiDocument(std::span<const Route> routes);

/// The document of AllRoutes() as text. It is made once.
const std::string& OpenApiText();

}  // namespace muster::scaler::rest
