#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Which request asks for what: paths, queries and bodies of the API. Pure, thread-safe functions.
namespace muster::kubernetes {

/// The kinds of objects that Muster touches.
enum class Resource {
  kPods,
  kJobs,
  kServices,
  kConfigMaps,
  kSecrets,
  kPersistentVolumeClaims,
  kEvents,
  kSelfSubjectAccessReviews,
  kServiceAccounts,
  kRoles,
  kRoleBindings,
};

/// The plural in paths and RBAC rules ("pods").
std::string_view PluralOf(Resource resource);
/// The `kind` of its objects ("Pod").
std::string_view KindOf(Resource resource);
/// The `apiVersion` of its objects ("batch/v1").
std::string_view ApiVersionOf(Resource resource);
/// The group in RBAC rules: "batch"; empty: the core group.
std::string_view ApiGroupOf(Resource resource);
/// The resource whose objects have this `kind`; nothing if Muster touches none of them.
std::optional<Resource> ResourceOfKind(std::string_view kind);
/// False for SelfSubjectAccessReviews, which belong to no namespace.
bool IsNamespaced(Resource resource);

constexpr size_t kObjectNameBytesMax = 253;
constexpr size_t kLabelBytesMax = 63;

/// kInvalidArgument, with the name and the rule, unless `name` may name an object: lower-case
/// letters, digits, '-' and '.', at most 253, with a letter or a digit at both ends of each part.
absl::Status CheckObjectName(std::string_view name);
/// The same for names that become part of a DNS name (namespaces, services): no '.', at most 63.
absl::Status CheckLabel(std::string_view name);

/// Where an object or a collection is.
struct ObjectPlace {
  Resource resource = Resource::kPods;
  std::string ns;
  /// Empty: the collection.
  std::string name;
  /// "status", "log", "resize"; empty: the object itself.
  std::string subresource;
};

/// The path of `place`, without a query. kInvalidArgument if a name in it is not valid, so no name
/// can reach another object.
absl::StatusOr<std::string> PathOf(const ObjectPlace& place);

/// Which objects a list or a watch shows.
struct Selection {
  /// "muster.io/job=ads"; empty: all.
  std::string labels;
  /// "spec.nodeName=n1"; empty: all.
  std::string fields;
  friend bool operator==(const Selection&, const Selection&) = default;
};

/// Each begins with '?', or is empty.
/// A page of a list: at most `limit` objects, from where `continue_token` (of the page before)
/// says.
std::string ListQuery(const Selection& selection, uint32_t limit, std::string_view continue_token);
/// Changes after `resource_version`, with bookmarks; the server ends the watch after `timeout`.
std::string WatchQuery(const Selection& selection, std::string_view resource_version,
                       std::chrono::seconds timeout);

struct LogQuery {
  /// Empty: the only container.
  std::string container;
  /// Sends what comes until the container ends.
  bool follow = false;
  /// Of the container that ran before the last restart.
  bool previous = false;
  std::optional<std::chrono::seconds> since;
  /// Each line begins with its time, in RFC 3339 with nanoseconds, and a blank.
  bool timestamps = false;
  /// From this second on, in RFC 3339; empty: from the beginning.
  std::string since_time;
  std::optional<uint32_t> tail_lines;
  std::optional<uint64_t> bytes_max;
};
std::string LogQueryText(const LogQuery& query);

struct DeleteOptions {
  /// Only this object, and not one that has its name now. Empty: whatever has the name.
  std::string uid;
  /// Between SIGTERM and SIGKILL; nothing: what the object says.
  std::optional<std::chrono::seconds> grace;
  /// The server deletes what the object owns in the background (false: first its children).
  bool foreground = false;
};
nlohmann::json DeleteBody(const DeleteOptions& options);

/// How the body of a PATCH changes the object.
/// kApply: the body is the object, as one part of its owners wants it (server-side apply); it is
/// made if it is not there.
enum class PatchKind { kMerge, kStrategicMerge, kJson, kApply };
/// The content type that says so.
std::string_view ContentTypeOf(PatchKind kind);

/// The query of a PATCH: with kApply, Muster's fields win over those of others.
std::string_view PatchQuery(PatchKind kind);

/// The body that asks if the caller may do `verb` to `resource` in `ns`, for
/// kSelfSubjectAccessReviews. `subresource` may be empty.
nlohmann::json AccessReviewBody(std::string_view verb, Resource resource,
                                std::string_view subresource, std::string_view ns);

}  // namespace muster::kubernetes
