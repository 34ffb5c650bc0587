#include "scaler/model/model_json.h"

namespace muster::scaler::rest {
namespace {

template <typename... Documents>
nlohmann::json SchemasOf() {
  nlohmann::json schemas = nlohmann::json::object();
  (SchemaOf<Documents>(&schemas), ...);
  return schemas;
}

}  // namespace

nlohmann::json ModelSchemas() {
  return SchemasOf<Status, DatasetList, ShardPage, ShardMap, NodeList, LogChunk, PartitionPage,
                   EventList, Explanation, Samples, PolicyList>();
}

std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster::scaler::rest
