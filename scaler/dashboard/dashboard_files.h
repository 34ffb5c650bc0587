#pragma once

#include <vector>

#include "scaler/rest/rest_service.h"

namespace muster::scaler::dashboard {

/// Returns the files of the dashboard, for HttpServerOptions::files. The page has the path "/", and
/// the files that it loads have paths "/dashboard/NAME". Their bytes are part of the program, so
/// they outlive everything. Thread-safe.
std::vector<rest::StaticFile> DashboardFiles();

}  // namespace muster::scaler::dashboard
