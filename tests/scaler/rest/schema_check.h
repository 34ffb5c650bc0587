#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace muster::scaler::rest::testing {

/// Checks documents against those parts of JSON Schema that the interface's description uses.
class SchemaCheck {
 public:
  explicit SchemaCheck(const nlohmann::json& schemas) : schemas_(schemas) {}

  /// "" when `value` is as `schema` says, else where it is not and why.
  std::string Check(const nlohmann::json& value, const nlohmann::json& schema,
                    const std::string& at = "$") const {
    if (schema.contains("$ref")) {
      const std::string ref = schema["$ref"];
      const std::string name = ref.substr(ref.rfind('/') + 1);
      if (!schemas_.contains(name)) return at + ": no schema " + name;
      return Check(value, schemas_[name], at);
    }
    if (schema.contains("anyOf")) {
      for (const nlohmann::json& one : schema["anyOf"]) {
        if (Check(value, one, at).empty()) return "";
      }
      return at + ": none of anyOf";
    }
    if (!HasType(value, schema.at("type"))) return at + ": type of " + value.dump();
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      return at + ": not in enum: " + value.dump();
    }
    if (schema.contains("minimum") && value.is_number() && value < schema["minimum"]) {
      return at + ": below minimum";
    }
    if (schema.contains("pattern") && value.is_string() &&
        !std::regex_search(value.get<std::string>(),
                           std::regex(schema["pattern"].get<std::string>()))) {
      return at + ": not as the pattern: " + value.dump();
    }
    if (value.is_array()) return CheckArray(value, schema, at);
    if (value.is_object()) return CheckObject(value, schema, at);
    return "";
  }

 private:
  static bool HasType(const nlohmann::json& value, const nlohmann::json& type) {
    if (type.is_array()) {
      return std::any_of(type.begin(), type.end(),
                         [&value](const nlohmann::json& one) { return HasType(value, one); });
    }
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "number" && value.is_number()) || (type == "null" && value.is_null()) ||
           (type == "integer" && value.is_number_integer());
  }

  std::string CheckArray(const nlohmann::json& value, const nlohmann::json& schema,
                         const std::string& at) const {
    for (size_t i = 0; i < value.size(); ++i) {
      std::string wrong = Check(value[i], schema.at("items"), at + "[" + std::to_string(i) + "]");
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  std::string CheckObject(const nlohmann::json& value, const nlohmann::json& schema,
                          const std::string& at) const {
    const nlohmann::json properties = schema.value("properties", nlohmann::json::object());
    const nlohmann::json others = schema.value("additionalProperties", nlohmann::json(true));
    for (const nlohmann::json& name : schema.value("required", nlohmann::json::array())) {
      if (!value.contains(name)) return at + ": lacks " + name.dump();
    }
    for (const auto& [name, field] : value.items()) {
      const std::string there = at + "." + name;
      std::string wrong;
      if (properties.contains(name)) {
        wrong = Check(field, properties[name], there);
      } else if (others.is_object()) {
        wrong = Check(field, others, there);
      } else if (others == false) {
        wrong = there + ": is not allowed";
      }
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  nlohmann::json schemas_;
};

}  // namespace muster::scaler::rest::testing
