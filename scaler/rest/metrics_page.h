#pragma once

#include <string>
#include <string_view>

#include "scaler/rest/job_api.h"
#include "scaler/rest/rest_stats.h"

namespace muster::scaler::rest {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

/// The most nodes, datasets, or metrics of datasets that are shown. The others are left out and
/// counted, so that the number of labels is bounded.
inline constexpr size_t kMetricsNodesMax = 256;
inline constexpr size_t kMetricsDatasetsMax = 32;
inline constexpr size_t kMetricsTopicPartitionsMax = 256;
inline constexpr size_t kMetricsTrendsMax = 64;

/// Returns the model in Prometheus' text format 0.0.4. Names begin with muster_ and have base
/// units, and counters end in _total. HELP and TYPE stand before each family. The number of labels
/// is bounded. Pure. Source: prometheus.io "Exposition formats", "Metric and label naming".
std::string MetricsText(const Picture& picture, const RestStats& rest);

}  // namespace muster::scaler::rest
