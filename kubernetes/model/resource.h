#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// The requests of the API: paths, queries and bodies. Pure, thread-safe functions.
namespace muster::kubernetes {

/// The kinds of objects that Muster uses.
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

/// OK if `name` may be the name of an object: lower-case letters, digits, '-' and '.', at most 253,
/// with a letter or a digit at both ends of each part. Otherwise kInvalidArgument, with the name
/// and the rule.
absl::Status CheckObjectName(std::string_view name);
/// The same for names that become a part of a DNS name (namespaces, services): no '.', at most 63.
absl::Status CheckLabel(std::string_view name);

/// The place of an object or a collection.
struct ObjectPlace {
  Resource resource = Resource::kPods;
  std::string ns;
  /// If empty, the place is the collection.
  std::string name;
  /// "status", "log", or "resize". If empty, the place is the object itself.
  std::string subresource;
};

/// The path of `place`, without a query. kInvalidArgument if a name in it is not valid. So no name
/// can reach another object.
absl::StatusOr<std::string> PathOf(const ObjectPlace& place);

/// Which objects a list or a watch shows.
struct Selection {
  /// Such as "muster.io/job=ads"; empty: all.
  std::string labels;
  /// Such as "spec.nodeName=n1"; empty: all.
  std::string fields;
  friend bool operator==(const Selection&, const Selection&) = default;
};

/// A page of a list: at most `limit` objects, from the place that `continue_token` of the page
/// before names. Like all following queries, it begins with '?' or is empty.
std::string ListQuery(const Selection& selection, uint32_t limit, std::string_view continue_token);
/// Changes after `resource_version`, with bookmarks. The server ends the watch after `timeout`.
std::string WatchQuery(const Selection& selection, std::string_view resource_version,
                       std::chrono::seconds timeout);

struct LogQuery {
  /// If empty, the only container.
  std::string container;
  /// Whether new output is sent until the container ends.
  bool follow = false;
  /// Whether the log is that of the container before the last restart.
  bool previous = false;
  std::optional<std::chrono::seconds> since;
  /// Whether each line begins with its time, in RFC 3339 with nanoseconds, and a blank.
  bool timestamps = false;
  /// Output from this second on, in RFC 3339. If empty, from the beginning.
  std::string since_time;
  std::optional<uint32_t> tail_lines;
  std::optional<uint64_t> bytes_max;
};
std::string LogQueryText(const LogQuery& query);

struct DeleteOptions {
  /// Deletes only this object, and not another one that has its name now. If empty, it deletes any
  /// object with the name.
  std::string uid;
  /// The time between SIGTERM and SIGKILL. If absent, the object says it.
  std::optional<std::chrono::seconds> grace;
  /// Whether the server first deletes what the object owns. If false, it does so in the background.
  bool foreground = false;
};
nlohmann::json DeleteBody(const DeleteOptions& options);

/// How the body of a PATCH changes the object. With kApply, the body is the object as one of its
/// owners wants it (server-side apply); the object is created if it does not exist.
enum class PatchKind { kMerge, kStrategicMerge, kJson, kApply };
/// The content type for this kind.
std::string_view ContentTypeOf(PatchKind kind);

/// The query of a PATCH. With kApply, Muster's fields have priority over those of others.
std::string_view PatchQuery(PatchKind kind);

/// The body that asks whether the caller may do `verb` to `resource` in `ns`, for
/// kSelfSubjectAccessReviews. `subresource` may be empty.
nlohmann::json AccessReviewBody(std::string_view verb, Resource resource,
                                std::string_view subresource, std::string_view ns);

}  // namespace muster::kubernetes
