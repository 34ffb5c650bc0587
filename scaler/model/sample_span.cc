#include "scaler/model/sample_span.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace muster::scaler {
namespace {

bool GoesBack(const NodeSample& from, const NodeSample& to) {
  const WorkerTotals &a = from.worker, &b = to.worker;
  const ServerTotals &c = from.server, &d = to.server;
  return to.cpu < from.cpu || to.throttled < from.throttled || b.records < a.records ||
         b.minibatches < a.minibatches || b.computing < a.computing ||
         b.waiting_shards < a.waiting_shards || b.waiting_pulls < a.waiting_pulls ||
         b.waiting_pushes < a.waiting_pushes || d.pulls < c.pulls || d.rows < c.rows ||
         d.parts < c.parts || d.moved_bytes < c.moved_bytes || d.serving < c.serving ||
         d.peer_requests < c.peer_requests || d.peer_round_trip < c.peer_round_trip;
}

}  // namespace

std::optional<Span> SpanSince(const NodeView& node, TimePoint from,
                              std::chrono::milliseconds least) {
  return SpanBetween(node, from, TimePoint::max(), least);
}

std::optional<Span> SpanBetween(const NodeView& node, TimePoint from, TimePoint to,
                                std::chrono::milliseconds least) {
  MUSTER_CHECK(least.count() > 0);
  const auto begin = std::partition_point(node.samples.begin(), node.samples.end(),
                                          [from](const NodeSample& s) { return s.at < from; });
  const auto end = std::partition_point(begin, node.samples.end(),
                                        [to](const NodeSample& s) { return s.at <= to; });
  if (begin == end) return std::nullopt;
  const Span span{.begin = &*begin, .end = &*std::prev(end)};
  if (span.end->at - span.begin->at < least || GoesBack(*span.begin, *span.end)) {
    return std::nullopt;
  }
  return span;
}

bool WaitsForServers(const Span& span, double share) {
  const WorkerTotals &from = span.begin->worker, &to = span.end->worker;
  const double waits = span.Rate(to.waiting_pulls - from.waiting_pulls) +
                       span.Rate(to.waiting_pushes - from.waiting_pushes);
  const double computes = span.Rate(to.computing - from.computing);
  return waits >= share && computes <= (1 - share) * waits;
}

double Median(std::vector<double> values) {
  MUSTER_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace muster::scaler
