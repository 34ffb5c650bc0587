#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "scaler/model/job_view.h"

namespace muster::scaler {

/// Two samples of one life of a node, and what happened between them.
struct Span {
  const NodeSample* begin = nullptr;
  const NodeSample* end = nullptr;

  double seconds() const { return std::chrono::duration<double>(end->at - begin->at).count(); }
  std::chrono::seconds window() const {
    return std::chrono::round<std::chrono::seconds>(end->at - begin->at);
  }
  /// Cores in use: CPU seconds per second of wall time.
  double cpus() const { return Rate(end->cpu - begin->cpu); }
  /// The share of the time that the CPU quota held it back. It is cut to 1, because the kernel adds
  /// up the time of every core.
  double throttled() const { return std::min(Rate(end->throttled - begin->throttled), 1.0); }
  double Rate(std::chrono::microseconds grown) const {
    return std::chrono::duration<double>(grown).count() / seconds();
  }
};

/// From the oldest sample of `node` that is not before `from` to its newest sample. None if they
/// are less than `least` apart. Also none if a running total goes back between them, because then
/// the samples are of two lives. `least` must be above 0. The span points into `node`.
std::optional<Span> SpanSince(const NodeView& node, TimePoint from,
                              std::chrono::milliseconds least);
/// The same, but only with samples that are not after `to`.
std::optional<Span> SpanBetween(const NodeView& node, TimePoint from, TimePoint to,
                                std::chrono::milliseconds least);

/// True if a worker waited for rows and acknowledgements for at least `share` of the time, and
/// computed for at most (1 - `share`) of its waiting time. (One of several loops may compute while
/// the others wait. Then the servers do not hold the worker up.)
bool WaitsForServers(const Span& span, double share);

/// The median; of an even number of values the mean of the middle two. Requires: not empty.
double Median(std::vector<double> values);

}  // namespace muster::scaler
