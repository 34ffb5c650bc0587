#pragma once

#include <vector>

#include "scaler/rest/rest_service.h"

namespace muster::scaler::dashboard {

/// The dashboard: what HttpServerOptions::files takes. "/" is the page, "/dashboard/NAME" what it
/// loads. The bytes are part of the program and outlive everything. Thread-safe.
std::vector<rest::StaticFile> DashboardFiles();

}  // namespace muster::scaler::dashboard
