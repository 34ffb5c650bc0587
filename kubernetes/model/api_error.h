#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

/// What an answer of the API server that is no success means. Pure, thread-safe functions.
namespace muster::kubernetes {

/// What a caller does about it differs by these.
enum class ApiErrorKind {
  kNotFound,
  /// The name is taken: get the object, and compare its label and UID.
  kAlreadyExists,
  /// The version or the UID is another one now: get the object again.
  kConflict,
  /// The credentials are not accepted.
  kUnauthorized,
  /// RBAC or an admission rule does not allow it: waiting does not help.
  kForbidden,
  /// The namespace is full: it may pass.
  kQuotaExceeded,
  /// A resize beyond what the pod's node has altogether: replace the pod.
  kNodeTooSmall,
  /// The namespace is being deleted.
  kNamespaceEnding,
  kTooManyRequests,
  /// The version to watch from is too old: list again.
  kGone,
  /// The object is not valid.
  kInvalid,
  /// The server is away or not well: it may pass. If it was a change, it may have happened.
  kUnavailable,
  /// Something else, or no answer of a Kubernetes API server.
  kOther,
};

/// What RBAC refused: "create" "pods" in "team".
struct MissingPermission {
  std::string verb;
  /// With its subresource: "pods/log".
  std::string resource;
  /// Empty: the core group.
  std::string api_group;
  /// Empty: in the whole cluster.
  std::string ns;
  std::string user;
  friend bool operator==(const MissingPermission&, const MissingPermission&) = default;
};

struct ApiError {
  ApiErrorKind kind = ApiErrorKind::kOther;
  /// Of HTTP.
  int code = 0;
  /// The server's word for it ("AlreadyExists"); may be empty.
  std::string reason;
  /// The server's sentence; may be empty.
  std::string message;
  /// How long the server asks to wait.
  std::optional<std::chrono::seconds> retry_after;
  /// With kForbidden, if RBAC refused.
  std::optional<MissingPermission> missing;
};

/// Reads an answer: `code` of HTTP, `body` (a Status object, or anything), and the value of the
/// header Retry-After (empty if there is none).
ApiError ReadApiError(int code, std::string_view body, std::string_view retry_after);

/// One plain sentence: what was refused, and what a person can do about it.
std::string Explain(const ApiError& error);

/// The error as a status: the code that fits, Explain()'s text, and the kind and the wait inside.
absl::Status ToStatus(const ApiError& error);

/// A status of this room's client for a connection that failed: kUnavailable.
absl::Status ConnectionError(std::string_view what);

/// The kind inside a status; kOther if it is not one of this room's.
ApiErrorKind KindOf(const absl::Status& status);
/// How long the server asks to wait, if it does.
std::optional<std::chrono::seconds> RetryAfterOf(const absl::Status& status);

}  // namespace muster::kubernetes
