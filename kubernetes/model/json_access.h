#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// Reading objects of the API without a throw: whatever is missing, or has another type than
/// expected, counts as absent. Pure, thread-safe functions.
namespace muster::kubernetes {

/// Keys from the outside inwards.
using JsonPath = std::initializer_list<std::string_view>;

/// The value at `path`; a null if there is none.
const nlohmann::json& ValueAt(const nlohmann::json& object, JsonPath path);
/// The text at `path`; empty if there is none.
std::string TextAt(const nlohmann::json& object, JsonPath path);
/// The integer at `path`.
int64_t IntegerAt(const nlohmann::json& object, JsonPath path, int64_t otherwise);
/// The elements of the array at `path`; an empty array if there is none.
const nlohmann::json& ElementsAt(const nlohmann::json& object, JsonPath path);

/// What tells objects apart. A name may return with another UID: then it is another object.
struct ObjectIdentity {
  std::string name;
  std::string uid;
  std::string resource_version;
};
ObjectIdentity IdentityOf(const nlohmann::json& object);

/// The condition `type` of a pod or a Job, if it has this status; else a null.
const nlohmann::json& ConditionOf(const nlohmann::json& object, std::string_view type,
                                  std::string_view status = "True");
/// What the status of a pod says of a container, of its first if `container` is empty; a null if it
/// says nothing yet.
const nlohmann::json& ContainerStatusOf(const nlohmann::json& pod, std::string_view container);

/// Of arrays and objects inside each other: copying and writing JSON uses the stack.
inline constexpr size_t kJsonDepthMax = 100;

/// The document in `text`. kInvalidArgument, with the beginning of the text, if it is no JSON, or
/// is nested more deeply than kJsonDepthMax.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text);

/// As text, in one line; bytes that are not UTF-8 become U+FFFD.
std::string ToText(const nlohmann::json& document);

}  // namespace muster::kubernetes
