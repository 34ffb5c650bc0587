#include "kubernetes/model/api_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "base/text.h"
#include "kubernetes/model/json_access.h"

namespace muster::kubernetes {
namespace {

constexpr size_t kMessageBytesMax = 1'000;
constexpr std::string_view kPayloadKind = "muster/kubernetes-error";
constexpr std::string_view kPayloadRetry = "muster/kubernetes-retry-after";
/// Neither a server, nor something between it and us, can make us wait for longer.
constexpr std::chrono::seconds kRetryAfterMax{300};

absl::string_view Abseil(std::string_view text) {
  return {text.data(), text.size()};
}

std::optional<int64_t> WholeNumber(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || text.empty()) return std::nullopt;
  return value;
}

std::optional<std::chrono::seconds> Wait(std::optional<int64_t> seconds) {
  if (!seconds || *seconds <= 0) return std::nullopt;
  return std::min(std::chrono::seconds(*seconds), kRetryAfterMax);
}

/// The text between `before` and the next `after`. Empty if it is not found.
std::string Between(std::string_view text, std::string_view before, std::string_view after) {
  const size_t found = text.find(before);
  if (found == std::string_view::npos) return "";
  text.remove_prefix(found + before.size());
  const size_t end = text.find(after);
  return end == std::string_view::npos ? "" : std::string(text.substr(0, end));
}

/// Parses RBAC's sentence: User "u" cannot create resource "pods" in API group "" in the namespace
/// "n". Only the sentence contains the verb; the fields of a Status do not.
std::optional<MissingPermission> ReadMissingPermission(std::string_view message) {
  MissingPermission missing{.verb = Between(message, "\" cannot ", " resource \""),
                            .resource = Between(message, " resource \"", "\""),
                            .api_group = Between(message, "API group \"", "\""),
                            .ns = Between(message, "in the namespace \"", "\""),
                            .user = Between(message, "User \"", "\"")};
  if (missing.verb.empty() || missing.resource.empty()) return std::nullopt;
  return missing;
}

bool HasCause(const nlohmann::json& status, std::string_view reason) {
  for (const nlohmann::json& cause : ElementsAt(status, {"details", "causes"})) {
    if (TextAt(cause, {"reason"}) == reason) return true;
  }
  return false;
}

ApiErrorKind KindOfForbidden(const nlohmann::json& status, std::string_view message) {
  // These errors all have the same code and reason, so only the sentence tells them apart.
  if (message.find("exceeded quota:") != std::string_view::npos) {
    return ApiErrorKind::kQuotaExceeded;
  }
  if (message.find("node didn't have enough allocatable resources") != std::string_view::npos) {
    return ApiErrorKind::kNodeTooSmall;
  }
  if (HasCause(status, "NamespaceTerminating")) return ApiErrorKind::kNamespaceEnding;
  return ApiErrorKind::kForbidden;
}

ApiErrorKind KindOfAnswer(int code, std::string_view reason, const nlohmann::json& status,
                          std::string_view message) {
  switch (code) {
    case 401:
      return ApiErrorKind::kUnauthorized;
    case 403:
      return KindOfForbidden(status, message);
    case 404:
      return ApiErrorKind::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? ApiErrorKind::kAlreadyExists : ApiErrorKind::kConflict;
    case 410:
      return ApiErrorKind::kGone;
    case 429:
      return ApiErrorKind::kTooManyRequests;
    case 400:
    case 405:
    case 413:
    case 415:
    case 422:
      return ApiErrorKind::kInvalid;
    default:
      return code >= 500 && code != 501 ? ApiErrorKind::kUnavailable : ApiErrorKind::kOther;
  }
}

std::string ExplainForbidden(const ApiError& error) {
  if (!error.missing) return fmt::format("the cluster does not allow this: {}", error.message);
  const MissingPermission& missing = *error.missing;
  const std::string group = missing.api_group.empty() ? "" : " of " + missing.api_group;
  const std::string where =
      missing.ns.empty() ? "the whole cluster" : fmt::format("the namespace \"{}\"", missing.ns);
  return fmt::format(
      "\"{}\" may not {} {}{} in {}: give it a Role with the verb \"{}\" for the resource \"{}\"",
      missing.user, missing.verb, missing.resource, group, where, missing.verb, missing.resource);
}

absl::StatusCode CodeOf(ApiErrorKind kind) {
  switch (kind) {
    case ApiErrorKind::kNotFound:
      return absl::StatusCode::kNotFound;
    case ApiErrorKind::kAlreadyExists:
      return absl::StatusCode::kAlreadyExists;
    case ApiErrorKind::kConflict:
      return absl::StatusCode::kAborted;
    case ApiErrorKind::kUnauthorized:
      return absl::StatusCode::kUnauthenticated;
    case ApiErrorKind::kForbidden:
      return absl::StatusCode::kPermissionDenied;
    case ApiErrorKind::kQuotaExceeded:
    case ApiErrorKind::kTooManyRequests:
      return absl::StatusCode::kResourceExhausted;
    case ApiErrorKind::kNodeTooSmall:
    case ApiErrorKind::kNamespaceEnding:
      return absl::StatusCode::kFailedPrecondition;
    case ApiErrorKind::kGone:
      return absl::StatusCode::kOutOfRange;
    case ApiErrorKind::kInvalid:
      return absl::StatusCode::kInvalidArgument;
    case ApiErrorKind::kUnavailable:
      return absl::StatusCode::kUnavailable;
    case ApiErrorKind::kOther:
      break;
  }
  return absl::StatusCode::kInternal;
}

/// It takes a string_view, because Clang 19 and Debian's Abseil do not agree on the names of Cord's
/// templates.
void SetNumber(std::string_view name, int64_t number, absl::Status* status) {
  status->SetPayload(Abseil(name), absl::Cord(Abseil(std::to_string(number))));
}

}  // namespace

ApiError ReadApiError(int code, std::string_view body, std::string_view retry_after) {
  const nlohmann::json document = nlohmann::json::parse(body, nullptr, false);
  const bool is_status = TextAt(document, {"kind"}) == "Status";
  ApiError error;
  // For an error inside a watch, only the Status has the code.
  error.code = is_status ? static_cast<int>(IntegerAt(document, {"code"}, code)) : code;
  error.reason = is_status ? TextAt(document, {"reason"}) : "";
  error.message = Excerpt(is_status ? TextAt(document, {"message"}) : body, kMessageBytesMax);
  error.kind = KindOfAnswer(error.code, error.reason, document, error.message);
  if (error.kind == ApiErrorKind::kForbidden) error.missing = ReadMissingPermission(error.message);
  error.retry_after = Wait(WholeNumber(retry_after));
  if (!error.retry_after) {
    error.retry_after = Wait(IntegerAt(document, {"details", "retryAfterSeconds"}, 0));
  }
  return error;
}

std::string Explain(const ApiError& error) {
  switch (error.kind) {
    case ApiErrorKind::kNotFound:
      return fmt::format("there is no such object: {}", error.message);
    case ApiErrorKind::kAlreadyExists:
      return fmt::format("the name is taken: {}", error.message);
    case ApiErrorKind::kConflict:
      return fmt::format("the object has changed meanwhile: {}", error.message);
    case ApiErrorKind::kUnauthorized:
      return "the API server does not accept the credentials: has the token expired, or is it of "
             "another cluster?";
    case ApiErrorKind::kForbidden:
      return ExplainForbidden(error);
    case ApiErrorKind::kQuotaExceeded:
      return fmt::format("the quota of the namespace is used up: {}", error.message);
    case ApiErrorKind::kNodeTooSmall:
      return fmt::format("the pod's node is too small for this: {}", error.message);
    case ApiErrorKind::kNamespaceEnding:
      return fmt::format("the namespace is being deleted: {}", error.message);
    case ApiErrorKind::kTooManyRequests:
      return fmt::format("the API server asks for fewer requests: {}", error.message);
    case ApiErrorKind::kGone:
      return fmt::format("the API server no longer has this version: {}", error.message);
    case ApiErrorKind::kInvalid:
      return fmt::format("the API server refuses the request: {}", error.message);
    case ApiErrorKind::kUnavailable:
      return fmt::format("the API server is not available ({}): {}", error.code, error.message);
    case ApiErrorKind::kOther:
      break;
  }
  return fmt::format("the answer {} was not expected: {}", error.code, error.message);
}

absl::Status ToStatus(const ApiError& error) {
  absl::Status status(CodeOf(error.kind), Abseil(Explain(error)));
  SetNumber(kPayloadKind, static_cast<int64_t>(error.kind), &status);
  if (error.retry_after) SetNumber(kPayloadRetry, error.retry_after->count(), &status);
  return status;
}

absl::Status ConnectionError(std::string_view what) {
  absl::Status status(absl::StatusCode::kUnavailable, Abseil(what));
  SetNumber(kPayloadKind, static_cast<int64_t>(ApiErrorKind::kUnavailable), &status);
  return status;
}

ApiErrorKind KindOf(const absl::Status& status) {
  const auto payload = status.GetPayload(Abseil(kPayloadKind));
  if (!payload) return ApiErrorKind::kOther;
  const std::optional<int64_t> kind = WholeNumber(std::string(*payload));
  return static_cast<ApiErrorKind>(kind.value_or(static_cast<int>(ApiErrorKind::kOther)));
}

std::optional<std::chrono::seconds> RetryAfterOf(const absl::Status& status) {
  const auto payload = status.GetPayload(Abseil(kPayloadRetry));
  if (!payload) return std::nullopt;
  return Wait(WholeNumber(std::string(*payload)));
}

}  // namespace muster::kubernetes
