#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "proto/fields/fields.h"

/// Writes documents and their schemas, and reads documents, all from the list of each struct's
/// fields (fields.h): for `--output json`, the REST interface, and files of events. `T::kName` is
/// the schema's name; an enum that is written as a word has WordsOf(). Code that includes this
/// links nlohmann_json. Pure.
namespace muster {

/// The text of a document: one line, or with `indent` blanks a level. Names of files may hold bytes
/// that are not UTF-8, which JSON cannot express: each becomes U+FFFD.
inline std::string JsonText(const nlohmann::json& document, int indent = -1) {
  return document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// A document.
class JsonFields {
 public:
  template <typename T>
  void operator()(uint32_t /*number*/, const char* name, const T& value,
                  const fields::About& /*about*/ = {}) {
    json_[name] = Value(value);
  }
  void Choice(uint32_t /*number*/, const char* name, const std::string& value, fields::Choices,
              const fields::About& /*about*/ = {}) {
    json_[name] = value;
  }

  template <typename T>
  static nlohmann::json Value(const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      return Number(value);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else if constexpr (fields::HasWords<T>) {
      return ToString(value);
    } else if constexpr (fields::IsNumber<T>) {
      return fields::ToNumber(value);
    } else if constexpr (fields::kIsOptional<T>) {
      return value ? Value(*value) : nlohmann::json(nullptr);
    } else if constexpr (fields::kIsVector<T>) {
      nlohmann::json array = nlohmann::json::array();
      for (const auto& element : value) array.push_back(Value(element));
      return array;
    } else if constexpr (fields::kIsMap<T>) {
      nlohmann::json object = nlohmann::json::object();
      for (const auto& [name, element] : value) object[name] = Value(element);
      return object;
    } else {
      JsonFields fields;
      T::Fields(fields, value);
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

/// Fills a struct from a document.
class ReadFields {
 public:
  template <typename T>
  void operator()(uint32_t /*number*/, const char* name, T& value,
                  const fields::About& /*about*/ = {}) {
    const auto found = json_.find(name);
    if (status_.ok() && found != json_.end()) {
      status_ = Read(*found, fmt::format("{}.{}", at_, name), &value);
    }
  }
  /// Any text, because a newer scaler may know more words.
  void Choice(uint32_t number, const char* name, std::string& value, fields::Choices,
              const fields::About& about = {}) {
    (*this)(number, name, value, about);
  }

  /// `at`: the value's name in errors.
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
    } else if constexpr (fields::HasWords<T>) {
      const std::span<const std::string_view> words = WordsOf(*value);
      const auto found = std::ranges::find(words, json.is_string() ? json.get<std::string>() : "");
      if (found == words.end()) return Unfit(json, at, fmt::format("{}", fmt::join(words, " or ")));
      *value = static_cast<T>(found - words.begin());
    } else if constexpr (fields::IsNumber<T>) {
      uint64_t number = 0;
      MUSTER_RETURN_IF_ERROR(Read(json, at, &number));
      *value = fields::FromNumber<T>(number);
    } else if constexpr (fields::kIsOptional<T>) {
      value->reset();
      if (!json.is_null()) return Read(json, at, &value->emplace());
    } else if constexpr (fields::kIsVector<T>) {
      if (!json.is_array()) return Unfit(json, at, "an array");
      value->clear();
      for (const nlohmann::json& element : json) {
        MUSTER_RETURN_IF_ERROR(Read(element, at + "[]", &value->emplace_back()));
      }
    } else if constexpr (fields::kIsMap<T>) {
      if (!json.is_object()) return Unfit(json, at, "an object");
      value->clear();
      for (const auto& [name, element] : json.items()) {
        MUSTER_RETURN_IF_ERROR(Read(element, fmt::format("{}.{}", at, name), &(*value)[name]));
      }
    } else {
      if (!json.is_object()) return Unfit(json, at, "an object");
      ReadFields fields(json, at);
      T::Fields(fields, *value);
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

/// A JSON Schema (2020-12).
class SchemaFields {
 public:
  explicit SchemaFields(nlohmann::json* components) : components_(components) {}

  template <typename T>
  void operator()(uint32_t /*number*/, const char* name, const T& /*value*/,
                  const fields::About& about = {}) {
    Add(name, Schema<T>(components_), about.says);
  }
  void Choice(uint32_t /*number*/, const char* name, const std::string& /*value*/,
              fields::Choices choices, const fields::About& about = {}) {
    nlohmann::json values = nlohmann::json::array();
    for (const char* choice : choices) values.push_back(choice);
    Add(name, {{"type", "string"}, {"enum", std::move(values)}}, about.says);
  }

  /// The schema of a value of type T; those of structs are put into `components` by name.
  template <typename T>
  static nlohmann::json Schema(nlohmann::json* components) {
    if constexpr (std::is_same_v<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_integral_v<T>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::is_same_v<T, double>) {
      return {{"type", {"number", "null"}}};  // null: not defined
    } else if constexpr (std::is_same_v<T, std::string>) {
      return {{"type", "string"}};
    } else if constexpr (fields::HasWords<T>) {
      return {{"type", "string"}, {"enum", WordsOf(T{})}};
    } else if constexpr (fields::IsNumber<T>) {
      return Schema<uint64_t>(components);
    } else if constexpr (std::is_same_v<T, std::optional<double>>) {
      return Schema<double>(components);
    } else if constexpr (fields::kIsOptional<T>) {
      return {
          {"anyOf", {Schema<typename T::value_type>(components), {{"type", "null"}}}},
      };
    } else if constexpr (fields::kIsVector<T>) {
      return {{"type", "array"}, {"items", Schema<typename T::value_type>(components)}};
    } else if constexpr (fields::kIsMap<T>) {
      return {{"type", "object"},
              {"additionalProperties", Schema<typename T::mapped_type>(components)}};
    } else {
      if (!components->contains(T::kName)) {
        (*components)[T::kName] = nullptr;  // ends a recursion
        SchemaFields fields(components);
        const T value{};
        T::Fields(fields, value);
        (*components)[T::kName] = {{"type", "object"},
                                   {"properties", std::move(fields.properties_)},
                                   {"required", std::move(fields.required_)},
                                   {"additionalProperties", false}};
      }
      return {{"$ref", fmt::format("#/components/schemas/{}", T::kName)}};
    }
  }

 private:
  void Add(const char* name, nlohmann::json schema, std::string_view says) {
    if (!says.empty()) schema["description"] = says;
    properties_[name] = std::move(schema);
    required_.push_back(name);
  }

  nlohmann::json* components_;
  nlohmann::json properties_ = nlohmann::json::object();
  nlohmann::json required_ = nlohmann::json::array();
};

template <fields::Listed T>
nlohmann::json ToJson(const T& value) {
  return JsonFields::Value(value);
}

/// Reads a document, for clients and for files of events. Missing fields keep their defaults, and
/// unknown fields are ignored, because fields are only ever added. InvalidArgument names a field of
/// another type.
template <fields::Listed T>
absl::StatusOr<T> FromJson(const nlohmann::json& json) {
  T value;
  MUSTER_RETURN_IF_ERROR(ReadFields::Read(json, T::kName, &value));
  return value;
}

/// A reference to the schema of T. Puts that schema and its parts into `components` by name.
template <fields::Listed T>
nlohmann::json SchemaOf(nlohmann::json* components) {
  return SchemaFields::Schema<T>(components);
}

}  // namespace muster
