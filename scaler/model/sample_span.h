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
  /// Of a second of wall time.
  double cpus() const { return Rate(end->cpu - begin->cpu); }
  /// At most 1: the kernel adds up the time of every core that it held back.
  double throttled() const { return std::min(Rate(end->throttled - begin->throttled), 1.0); }
  double Rate(std::chrono::microseconds grown) const {
    return std::chrono::duration<double>(grown).count() / seconds();
  }
};

/// The newest sample of `node` and its oldest not before `from`. Nothing when they are less than
/// `least` apart, or when a running total goes back between them: the samples are of two lives.
/// `least` > 0. The span points into `node`.
std::optional<Span> SpanSince(const NodeView& node, TimePoint from,
                              std::chrono::milliseconds least);
/// The same of the samples not after `to`.
std::optional<Span> SpanBetween(const NodeView& node, TimePoint from, TimePoint to,
                                std::chrono::milliseconds least);

/// Of a worker: it waited for rows and acknowledgements for this share of the time, and of what is
/// left it computed at most as much as that leaves. (Of several loops one may compute: then it is
/// not the servers that hold the worker up.)
bool WaitsForServers(const Span& span, double share);

/// The median; of an even number of values the mean of the middle two. Requires: not empty.
double Median(std::vector<double> values);

}  // namespace muster::scaler
