#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "scaler/rest/model.h"

/// Documents, their schemas, and the way back, all from one description of each struct. Pure.
namespace muster::scaler::rest {

nlohmann::json ToJson(const Job& job);
nlohmann::json ToJson(const DatasetList& list);
nlohmann::json ToJson(const ShardPage& page);
nlohmann::json ToJson(const ShardMap& map);
nlohmann::json ToJson(const NodeList& list);
nlohmann::json ToJson(const Node& node);
nlohmann::json ToJson(const LogChunk& chunk);
nlohmann::json ToJson(const PartitionPage& page);
nlohmann::json ToJson(const EventList& list);
nlohmann::json ToJson(const Event& event);
nlohmann::json ToJson(const Explanation& explanation);
nlohmann::json ToJson(const Samples& samples);
nlohmann::json ToJson(const PolicyList& list);
nlohmann::json ToJson(const Status& status);

/// The way back, for clients and for files of events: Event, EventList, Explanation, Job, Node,
/// NodeList, PolicyList. What a document lacks keeps its default, and what is not known here is
/// ignored, because fields are only ever added. InvalidArgument names a field of another type.
template <typename T>
absl::StatusOr<T> FromJson(const nlohmann::json& json);

/// {"Job": {...}, ...}: JSON Schema (2020-12) of every document above and of what they consist of,
/// as `components/schemas` of OpenAPI 3.1 has them.
nlohmann::json ModelSchemas();

/// One line; text that is no valid UTF-8 is repaired instead of refused.
std::string Dump(const nlohmann::json& json);

}  // namespace muster::scaler::rest
