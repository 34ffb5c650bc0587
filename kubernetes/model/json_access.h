#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

/// Reads objects of the API without throwing. A value that is missing, or has another type than
/// expected, counts as absent. Pure, thread-safe functions.
namespace muster::kubernetes {

/// Keys, from the outermost to the innermost.
using JsonPath = std::initializer_list<std::string_view>;

/// The value at `path`; a null if there is none.
const nlohmann::json& ValueAt(const nlohmann::json& object, JsonPath path);
/// The text at `path`; empty if there is none.
std::string TextAt(const nlohmann::json& object, JsonPath path);
/// The integer at `path`.
int64_t IntegerAt(const nlohmann::json& object, JsonPath path, int64_t otherwise);
/// The elements of the array at `path`; an empty array if there is none.
const nlohmann::json& ElementsAt(const nlohmann::json& object, JsonPath path);

/// Identifies an object. If its name returns with another UID, that is another object.
struct ObjectIdentity {
  std::string name;
  std::string uid;
  std::string resource_version;
};
ObjectIdentity IdentityOf(const nlohmann::json& object);

/// The condition `type` of a pod or a Job, if it has this status. Otherwise null.
const nlohmann::json& ConditionOf(const nlohmann::json& object, std::string_view type,
                                  std::string_view status = "True");
/// The status of a container in the status of a pod; of its first one if `container` is empty. Null
/// if there is none yet.
const nlohmann::json& ContainerStatusOf(const nlohmann::json& pod, std::string_view container);

/// The deepest nesting of arrays and objects. There is a limit, because copying and writing JSON
/// uses the stack.
inline constexpr size_t kJsonDepthMax = 100;

/// Parses the document in `text`. kInvalidArgument, with the beginning of the text, if it is no
/// JSON or is nested more deeply than kJsonDepthMax.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text);

/// The document as one line of text. Bytes that are not UTF-8 become U+FFFD.
std::string ToText(const nlohmann::json& document);

}  // namespace muster::kubernetes
