#include "scaler/sensor/newest_figures.h"

#include <algorithm>
#include <limits>

namespace muster::scaler {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

double PerSecond(const Span& span, uint64_t from, uint64_t to) {
  return static_cast<double>(to - from) / span.seconds();
}

double Each(microseconds time, uint64_t count) {
  return count == 0 ? kNoFigure : static_cast<double>(time.count()) / static_cast<double>(count);
}

void AddWorker(const NodeView& node, const Span& span, std::vector<Figure>* figures) {
  const WorkerTotals &from = span.begin->worker, &to = span.end->worker;
  const microseconds computing = to.computing - from.computing;
  const microseconds shards = to.waiting_shards - from.waiting_shards;
  const microseconds pulls = to.waiting_pulls - from.waiting_pulls;
  const microseconds pushes = to.waiting_pushes - from.waiting_pushes;
  const microseconds all = computing + shards + pulls + pushes;
  const auto share = [&](const char* name, microseconds part) {
    const double value = all.count() == 0
                             ? kNoFigure
                             : static_cast<double>(part.count()) / static_cast<double>(all.count());
    figures->push_back({node.name, name, "ratio", value});
  };
  figures->push_back(
      {node.name, "records_per_second", "records/s", PerSecond(span, from.records, to.records)});
  share("computing", computing);
  share("waiting_shards", shards);
  share("waiting_pulls", pulls);
  share("waiting_pushes", pushes);
}

void AddServer(const NodeView& node, const Span& span, std::vector<Figure>* figures) {
  const ServerTotals &from = span.begin->server, &to = span.end->server;
  const uint64_t pulls = to.pulls - from.pulls;
  const uint64_t parts = to.parts - from.parts;
  figures->push_back({node.name, "pulls_per_second", "requests/s", PerSecond(span, 0, pulls)});
  figures->push_back({node.name, "pushes_per_second", "parts/s", PerSecond(span, 0, parts)});
  figures->push_back(
      {node.name, "service_time", "us", Each(to.serving - from.serving, pulls + parts)});
  figures->push_back(
      {node.name, "round_trip", "us",
       Each(to.peer_round_trip - from.peer_round_trip, to.peer_requests - from.peer_requests)});
}

}  // namespace

std::optional<Span> NewestSpan(const NodeView& node, std::chrono::seconds window) {
  if (node.samples.empty()) return std::nullopt;
  // Samples are not exact in time, so a slightly earlier one is accepted.
  const TimePoint from = node.samples.back().at - window - milliseconds(100);
  return SpanSince(node, from, milliseconds(500));
}

std::vector<Figure> FiguresOf(const NodeView& node, std::chrono::seconds window) {
  std::vector<Figure> figures;
  if (node.samples.empty()) return figures;
  const NodeSample& newest = node.samples.back();
  const std::optional<Span> span = NewestSpan(node, window);
  const auto known = [](double percent) { return percent < 0 ? kNoFigure : percent; };
  const auto bytes = [](uint64_t value) {
    return value == 0 ? kNoFigure : static_cast<double>(value);
  };
  figures.push_back({node.name, "cpus", "cores", span.has_value() ? span->cpus() : kNoFigure});
  figures.push_back(
      {node.name, "throttled", "ratio", span.has_value() ? span->throttled() : kNoFigure});
  figures.push_back({node.name, "memory", "bytes", bytes(newest.memory_bytes)});
  figures.push_back({node.name, "memory_limit", "bytes", bytes(newest.memory_limit_bytes)});
  figures.push_back({node.name, "memory_pressure", "%", known(newest.memory_pressure_percent)});
  figures.push_back({node.name, "cpu_pressure", "%", known(newest.cpu_pressure_percent)});
  if (!span.has_value()) return figures;
  if (node.role == NodeRole::kWorker) AddWorker(node, *span, &figures);
  if (node.role == NodeRole::kServer) AddServer(node, *span, &figures);
  return figures;
}

}  // namespace muster::scaler
