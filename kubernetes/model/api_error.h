#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

/// The meaning of an answer of the API server that is not a success. Pure, thread-safe functions.
namespace muster::kubernetes {

/// The kinds of errors that callers handle in different ways.
enum class ApiErrorKind {
  kNotFound,
  /// The name is taken. Get the object, and compare its label and UID.
  kAlreadyExists,
  /// The object has another version or UID now. Get it again.
  kConflict,
  /// The credentials are not accepted.
  kUnauthorized,
  /// RBAC or an admission rule forbids it, so waiting does not help.
  kForbidden,
  /// The namespace's quota is used up. This may pass.
  kQuotaExceeded,
  /// The pod's node can never provide what the resize wants. Replace the pod.
  kNodeTooSmall,
  /// The namespace is being deleted.
  kNamespaceEnding,
  kTooManyRequests,
  /// The version to watch from is too old. List again.
  kGone,
  /// The object is not valid.
  kInvalid,
  /// The server is away or not well. This may pass. A change may have happened.
  kUnavailable,
  /// Something else, or an answer that is not from a Kubernetes API server.
  kOther,
};

/// What RBAC refused: "create" "pods" in "team".
struct MissingPermission {
  std::string verb;
  /// It includes the subresource: "pods/log".
  std::string resource;
  /// Empty for the core group.
  std::string api_group;
  /// Empty for the whole cluster.
  std::string ns;
  std::string user;
  friend bool operator==(const MissingPermission&, const MissingPermission&) = default;
};

struct ApiError {
  ApiErrorKind kind = ApiErrorKind::kOther;
  /// The HTTP status code.
  int code = 0;
  /// The server's word for it ("AlreadyExists"); may be empty.
  std::string reason;
  /// The server's sentence; may be empty.
  std::string message;
  /// How long the server wants us to wait.
  std::optional<std::chrono::seconds> retry_after;
  /// Only with kForbidden, if RBAC refused.
  std::optional<MissingPermission> missing;
};

/// Parses an answer: the HTTP status `code`, the `body` (a Status object, or anything else), and
/// the value of the header Retry-After (empty if there is none).
ApiError ReadApiError(int code, std::string_view body, std::string_view retry_after);

/// One plain sentence that says what was refused, and what a person can do about it.
std::string Explain(const ApiError& error);

/// Converts the error to a status with a fitting code and Explain()'s text. The kind and the wait
/// are inside it.
absl::Status ToStatus(const ApiError& error);

/// The status if a connection of this room's client failed: kUnavailable.
absl::Status ConnectionError(std::string_view what);

/// The kind inside a status. kOther if the status is not from this room.
ApiErrorKind KindOf(const absl::Status& status);
/// How long the server wants us to wait, if it says so.
std::optional<std::chrono::seconds> RetryAfterOf(const absl::Status& status);

}  // namespace muster::kubernetes
