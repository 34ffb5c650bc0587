#pragma once

#include <string>
#include <string_view>

#include "scaler/rest/job_api.h"
#include "scaler/rest/rest_stats.h"

namespace muster::scaler::rest {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

/// Beyond so many nodes, datasets or metrics of datasets the rest is left out, and counted: labels
/// stay bounded.
inline constexpr size_t kMetricsNodesMax = 256;
inline constexpr size_t kMetricsDatasetsMax = 32;
inline constexpr size_t kMetricsTopicPartitionsMax = 256;
inline constexpr size_t kMetricsTrendsMax = 64;

/// The model as Prometheus' text format 0.0.4: names muster_*, base units, counters end in _total,
/// HELP and TYPE before each family, no label without a bound. Pure.
/// Source: prometheus.io "Exposition formats", "Metric and label naming".
std::string MetricsText(const Picture& picture, const RestStats& rest);

}  // namespace muster::scaler::rest
