#include "scaler/rest/openapi.h"

#include <set>

#include "base/version.h"
#include "scaler/model/model_json.h"

namespace muster::scaler::rest {
namespace {

using nlohmann::json;

/// Errors that every route may answer with.
constexpr int kAnyErrors[] = {400, 403, 408, 413, 414, 421, 422, 429, 431, 500, 501, 503, 504};

json ProblemResponse(int status) {
  return {
      {"description", ReasonPhrase(status)},
      {"content",
       {{"application/problem+json", {{"schema", {{"$ref", "#/components/schemas/Problem"}}}}}}}};
}

json Success(const Route& route) {
  json schema = {{"$ref", "#/components/schemas/" + std::string(route.schema)}};
  if (route.schema.empty()) {
    schema = {{"type", route.content_type == "application/json" ? "object" : "string"}};
  }
  const std::string type(route.content_type.empty() ? "application/json" : route.content_type);
  json response = {{"description", ReasonPhrase(route.status)},
                   {"content", {{type, {{"schema", std::move(schema)}}}}}};
  if (route.kind == RouteKind::kAct) {
    response["headers"]["Location"] = {
        {"description", "The event that the action caused"},
        {"schema", {{"type", "string"}, {"pattern", "^/api/v1/events/[0-9]+$"}}}};
  }
  return response;
}

json Parameter(const Param& param) {
  json parameter = {{"name", param.name},
                    {"in", param.in == ParamIn::kPath ? "path" : "query"},
                    {"required", param.in == ParamIn::kPath || param.required},
                    {"description", param.meaning},
                    {"schema", SchemaOf(param)}};
  if (param.kind == ParamKind::kChoices) {
    parameter["style"] = "form";
    parameter["explode"] = false;
  }
  return parameter;
}

json Operation(const Route& route) {
  json operation = {
      {"operationId", route.operation}, {"summary", route.summary}, {"parameters", json::array()}};
  for (const Param& param : route.params) {
    if (param.in != ParamIn::kBody) operation["parameters"].push_back(Parameter(param));
  }
  if (route.kind == RouteKind::kAct) {
    operation["requestBody"] = {
        {"required", true},
        {"content",
         {{"application/json", {{"schema", BodySchema(route.params, route.body_any_of)}}}}}};
  }
  std::set<int> errors(std::begin(kAnyErrors), std::end(kAnyErrors));
  errors.insert(route.errors.begin(), route.errors.end());
  if (route.kind != RouteKind::kOpen) errors.insert(401);
  if (route.kind == RouteKind::kAct) errors.insert(415);
  json& responses = operation["responses"];
  responses[std::to_string(route.status)] = Success(route);
  for (const int error : errors) responses[std::to_string(error)] = ProblemResponse(error);
  if (route.kind == RouteKind::kOpen) operation["security"] = json::array();
  return operation;
}

}  // namespace

json OpenApiDocument(std::span<const Route> routes) {
  json schemas = ModelSchemas();
  schemas["Problem"] = json::parse(ProblemSchemaText());
  json paths = json::object();
  for (const Route& route : routes) {
    const char* method = route.kind == RouteKind::kAct ? "post" : "get";
    paths[std::string(route.path)][method] = Operation(route);
  }
  return {{"openapi", "3.1.0"},
          {"info",
           {{"title", "Muster"},
            {"version", kVersion},
            {"description",
             "One training job: what it does, what was decided and why, and orders to it. "
             "Fields are only ever added."}}},
          {"servers", {{{"url", "/"}}}},
          {"security", {{{"token", json::array()}}}},
          {"paths", std::move(paths)},
          {"components",
           {{"schemas", std::move(schemas)},
            {"securitySchemes",
             {{"token",
               {{"type", "http"},
                {"scheme", "bearer"},
                {"description", "What is in the file scaler/token of the state directory"}}}}}}}};
}

const std::string& OpenApiText() {
  static const auto* const kText = new std::string(Dump(OpenApiDocument(AllRoutes())) + "\n");
  return *kText;
}

}  // namespace muster::scaler::rest
