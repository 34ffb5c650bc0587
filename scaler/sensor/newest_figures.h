#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "scaler/model/job_view.h"
#include "scaler/model/sample_span.h"
#include "scaler/sensor/figure_rings.h"

namespace muster::scaler {

/// The newest figures of a node, rates over `window`, as docs/rest.md names them. NaN: not known.
std::vector<Figure> FiguresOf(const NodeView& node, std::chrono::seconds window);

/// The newest of the node's samples and one about `window` before it; nothing when its life is
/// shorter than a second.
std::optional<Span> NewestSpan(const NodeView& node, std::chrono::seconds window);

}  // namespace muster::scaler
