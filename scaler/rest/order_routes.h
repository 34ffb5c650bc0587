#pragma once

#include <vector>

#include "scaler/rest/router.h"

namespace muster::scaler::rest {

/// The orders of people: one row each says where it is sent, what its arguments are, and which
/// members of the order they fill. The routes read it, RestClient writes by it.
std::vector<Route> OrderRoutes();

}  // namespace muster::scaler::rest
