#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "scaler/model/job_view.h"
#include "scaler/model/sample_span.h"
#include "scaler/sensor/figure_rings.h"

namespace muster::scaler {

/// The newest figures of a node, with their names in docs/rest.md. Rates are over `window`. NaN:
/// not known.
std::vector<Figure> FiguresOf(const NodeView& node, std::chrono::seconds window);

/// The span from a sample about `window` ago to the node's newest sample. None if its life is
/// shorter than a second.
std::optional<Span> NewestSpan(const NodeView& node, std::chrono::seconds window);

}  // namespace muster::scaler
