#pragma once

#include <vector>

#include "scaler/rest/router.h"

namespace muster::scaler::rest {

/// The routes of people's orders. One row per order says where it is sent, what its arguments are,
/// and which members of the order they fill. The server reads requests by these rows, and
/// RestClient writes requests by them.
std::vector<Route> OrderRoutes();

}  // namespace muster::scaler::rest
