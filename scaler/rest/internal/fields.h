#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"

/// A struct's fields are described once, by a function `Describe(fields, value)` that calls
/// `fields.Field(name, member, meaning)` for each and `fields.Choice(...)` for texts of which only
/// some are possible; JsonFields turns that into a document, SchemaFields into its JSON Schema, and
/// ReadFields fills the struct from a document, for which `value` is not const.
/// `NameOf(value)` is the schema's name. Both are found by argument-dependent lookup.
namespace muster::scaler::rest::internal {

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsMap = false;
template <typename T>
inline constexpr bool kIsMap<std::map<std::string, T>> = true;

/// T is S, const or not.
template <typename T, typename S>
concept Is = std::is_same_v<std::remove_const_t<T>, S>;

using Choices = std::initializer_list<const char*>;

class JsonFields {
 public:
  template <typename T>
  void Field(const char* name, const T& value, const char* /*meaning*/) {
    json_[name] = Value(value);
  }
  void Choice(const char* name, const std::string& value, Choices, const char* /*meaning*/) {
    json_[name] = value;
  }

  template <typename T>
  static nlohmann::json Value(const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      return Number(value);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else if constexpr (kIsOptional<T>) {
      return value ? Value(*value) : nlohmann::json(nullptr);
    } else if constexpr (kIsVector<T>) {
      nlohmann::json array = nlohmann::json::array();
      for (const auto& element : value) array.push_back(Value(element));
      return array;
    } else if constexpr (kIsMap<T>) {
      nlohmann::json object = nlohmann::json::object();
      for (const auto& [name, element] : value) object[name] = Value(element);
      return object;
    } else {
      JsonFields fields;
      Describe(fields, value);
      return std::move(fields.json_);
    }
  }

 private:
  /// Whole numbers without a fraction, so that bytes look like bytes.
  static nlohmann::json Number(double value) {
    constexpr double kExactMax = 9007199254740992.0;  // 2^53
    if (!std::isfinite(value)) return nullptr;
    if (std::abs(value) <= kExactMax && value == std::floor(value)) {
      return static_cast<int64_t>(value);
    }
    return value;
  }

  nlohmann::json json_ = nlohmann::json::object();
};

class ReadFields {
 public:
  template <typename T>
  void Field(const char* name, T& value, const char* /*meaning*/) {
    const auto found = json_.find(name);
    if (status_.ok() && found != json_.end()) {
      status_ = Read(*found, fmt::format("{}.{}", at_, name), &value);
    }
  }
  /// Any text: a newer scaler may know more of them.
  void Choice(const char* name, std::string& value, Choices, const char* meaning) {
    Field(name, value, meaning);
  }

  /// `at`: what errors call the value.
  template <typename T>
  static absl::Status Read(const nlohmann::json& json, const std::string& at, T* value) {
    if constexpr (std::is_same_v<T, double>) {
      if (!json.is_number() && !json.is_null()) return Unfit(json, at, "a number or null");
      *value = json.is_null() ? std::nan("") : json.get<double>();
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return Unfit(json, at, "true or false");
      *value = json.get<bool>();
    } else if constexpr (std::is_arithmetic_v<T>) {
      static_assert(std::is_unsigned_v<T>);
      const bool fits =
          json.is_number_unsigned() && json.get<uint64_t>() <= std::numeric_limits<T>::max();
      if (!fits) return Unfit(json, at, "a whole number from 0");
      *value = json.get<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return Unfit(json, at, "a text");
      *value = json.get<std::string>();
    } else if constexpr (kIsOptional<T>) {
      value->reset();
      if (!json.is_null()) return Read(json, at, &value->emplace());
    } else if constexpr (kIsVector<T>) {
      if (!json.is_array()) return Unfit(json, at, "an array");
      value->clear();
      for (const nlohmann::json& element : json) {
        MUSTER_RETURN_IF_ERROR(Read(element, at + "[]", &value->emplace_back()));
      }
    } else if constexpr (kIsMap<T>) {
      if (!json.is_object()) return Unfit(json, at, "an object");
      value->clear();
      for (const auto& [name, element] : json.items()) {
        MUSTER_RETURN_IF_ERROR(Read(element, fmt::format("{}.{}", at, name), &(*value)[name]));
      }
    } else {
      if (!json.is_object()) return Unfit(json, at, "an object");
      ReadFields fields(json, at);
      Describe(fields, *value);
      return fields.status_;
    }
    return absl::OkStatus();
  }

 private:
  ReadFields(const nlohmann::json& json, const std::string& at) : json_(json), at_(at) {}
  static absl::Status Unfit(const nlohmann::json& json, const std::string& at,
                            std::string_view wanted) {
    return absl::InvalidArgumentError(
        fmt::format("{} must be {}, not of type {}", at, wanted, json.type_name()));
  }

  const nlohmann::json& json_;
  const std::string& at_;
  absl::Status status_;
};

class SchemaFields {
 public:
  explicit SchemaFields(nlohmann::json* components) : components_(components) {}

  template <typename T>
  void Field(const char* name, const T& value, const char* meaning) {
    Add(name, Schema(value, components_), meaning);
  }
  void Choice(const char* name, const std::string& /*value*/, Choices choices,
              const char* meaning) {
    nlohmann::json values = nlohmann::json::array();
    for (const char* choice : choices) values.push_back(choice);
    Add(name, {{"type", "string"}, {"enum", std::move(values)}}, meaning);
  }

  /// The schema of a value of type T; those of structs are put into `components` by name.
  template <typename T>
  static nlohmann::json Schema(const T& value, nlohmann::json* components) {
    if constexpr (std::is_same_v<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_integral_v<T>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::is_same_v<T, double>) {
      return {{"type", {"number", "null"}}};  // null: not defined
    } else if constexpr (std::is_same_v<T, std::string>) {
      return {{"type", "string"}};
    } else if constexpr (kIsOptional<T>) {
      if constexpr (std::is_same_v<T, std::optional<double>>) return Schema(double{}, components);
      return {
          {"anyOf", {Schema(typename T::value_type{}, components), {{"type", "null"}}}},
      };
    } else if constexpr (kIsVector<T>) {
      return {{"type", "array"}, {"items", Schema(typename T::value_type{}, components)}};
    } else if constexpr (kIsMap<T>) {
      return {{"type", "object"},
              {"additionalProperties", Schema(typename T::mapped_type{}, components)}};
    } else {
      const std::string name = NameOf(value);
      if (!components->contains(name)) {
        (*components)[name] = nullptr;  // ends a recursion
        SchemaFields fields(components);
        Describe(fields, value);
        (*components)[name] = {{"type", "object"},
                               {"properties", std::move(fields.properties_)},
                               {"required", std::move(fields.required_)},
                               {"additionalProperties", false}};
      }
      return {{"$ref", "#/components/schemas/" + name}};
    }
  }

 private:
  void Add(const char* name, nlohmann::json schema, std::string_view meaning) {
    if (!meaning.empty()) schema["description"] = meaning;
    properties_[name] = std::move(schema);
    required_.push_back(name);
  }

  nlohmann::json* components_;
  nlohmann::json properties_ = nlohmann::json::object();
  nlohmann::json required_ = nlohmann::json::array();
};

}  // namespace muster::scaler::rest::internal
