#include "kubernetes/model/json_access.h"

#include <fmt/format.h>

#include "base/status.h"
#include "base/text.h"

namespace muster::kubernetes {
namespace {

constexpr size_t kExcerptBytes = 120;

const nlohmann::json& Absent() {
  static const nlohmann::json absent;
  return absent;
}

/// Counts brackets outside of strings.
bool IsTooDeep(std::string_view text) {
  size_t depth = 0;
  bool is_in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      if (c == '"') is_in_string = false;
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kJsonDepthMax) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace

const nlohmann::json& ValueAt(const nlohmann::json& object, JsonPath path) {
  const nlohmann::json* at = &object;
  for (const std::string_view key : path) {
    if (!at->is_object()) return Absent();
    const auto found = at->find(std::string(key));
    if (found == at->end()) return Absent();
    at = &*found;
  }
  return *at;
}

std::string TextAt(const nlohmann::json& object, JsonPath path) {
  const nlohmann::json& value = ValueAt(object, path);
  return value.is_string() ? value.get<std::string>() : std::string();
}

int64_t IntegerAt(const nlohmann::json& object, JsonPath path, int64_t otherwise) {
  const nlohmann::json& value = ValueAt(object, path);
  return value.is_number_integer() ? value.get<int64_t>() : otherwise;
}

const nlohmann::json& ElementsAt(const nlohmann::json& object, JsonPath path) {
  static const nlohmann::json none = nlohmann::json::array();
  const nlohmann::json& value = ValueAt(object, path);
  return value.is_array() ? value : none;
}

ObjectIdentity IdentityOf(const nlohmann::json& object) {
  return {.name = TextAt(object, {"metadata", "name"}),
          .uid = TextAt(object, {"metadata", "uid"}),
          .resource_version = TextAt(object, {"metadata", "resourceVersion"})};
}

const nlohmann::json& ConditionOf(const nlohmann::json& object, std::string_view type,
                                  std::string_view status) {
  for (const nlohmann::json& condition : ElementsAt(object, {"status", "conditions"})) {
    if (TextAt(condition, {"type"}) == type && TextAt(condition, {"status"}) == status) {
      return condition;
    }
  }
  return Absent();
}

const nlohmann::json& ContainerStatusOf(const nlohmann::json& pod, std::string_view container) {
  std::string name(container);
  const nlohmann::json& containers = ElementsAt(pod, {"spec", "containers"});
  if (name.empty() && !containers.empty()) name = TextAt(containers.front(), {"name"});
  for (const nlohmann::json& status : ElementsAt(pod, {"status", "containerStatuses"})) {
    if (TextAt(status, {"name"}) == name) return status;
  }
  return Absent();
}

absl::StatusOr<nlohmann::json> ParseJson(std::string_view text) {
  if (IsTooDeep(text)) {
    return absl::InvalidArgumentError(fmt::format("this JSON is nested more than {} deep: \"{}\"",
                                                  kJsonDepthMax, Excerpt(text, kExcerptBytes)));
  }
  nlohmann::json document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_discarded()) return document;
  return absl::InvalidArgumentError(
      fmt::format("this is no JSON: \"{}\"", Excerpt(text, kExcerptBytes)));
}

std::string ToText(const nlohmann::json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster::kubernetes
