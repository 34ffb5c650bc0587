#include "kubernetes/model/resource.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "http/url/url.h"

namespace muster::kubernetes {
namespace {

struct ResourceRow {
  std::string_view plural;
  std::string_view kind;
  std::string_view api_version;
  bool namespaced = true;
};

/// In the order of Resource.
constexpr auto kRows = std::to_array<ResourceRow>({
    {"pods", "Pod", "v1"},
    {"jobs", "Job", "batch/v1"},
    {"services", "Service", "v1"},
    {"configmaps", "ConfigMap", "v1"},
    {"secrets", "Secret", "v1"},
    {"persistentvolumeclaims", "PersistentVolumeClaim", "v1"},
    {"events", "Event", "v1"},
    {"selfsubjectaccessreviews", "SelfSubjectAccessReview", "authorization.k8s.io/v1", false},
    {"serviceaccounts", "ServiceAccount", "v1"},
    {"roles", "Role", "rbac.authorization.k8s.io/v1"},
    {"rolebindings", "RoleBinding", "rbac.authorization.k8s.io/v1"},
});

const ResourceRow& RowOf(Resource resource) {
  return kRows[static_cast<size_t>(resource)];
}

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool IsLabelText(std::string_view text) {
  return !text.empty() && IsAlphanumeric(text.front()) && IsAlphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlphanumeric(c) || c == '-'; });
}

absl::Status BadName(std::string_view name, std::string_view rule) {
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" cannot be a name in Kubernetes: {}", Excerpt(name, 80), rule));
}

/// Collects "name=value" parts.
class QueryText {
 public:
  void Add(std::string_view name, std::string_view value) {
    text_ += fmt::format("{}{}={}", text_.empty() ? '?' : '&', name, UrlEncode(value));
  }
  void AddUnlessEmpty(std::string_view name, std::string_view value) {
    if (!value.empty()) Add(name, value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

QueryText Begin(const Selection& selection) {
  QueryText query;
  query.AddUnlessEmpty("labelSelector", selection.labels);
  query.AddUnlessEmpty("fieldSelector", selection.fields);
  return query;
}

}  // namespace

std::string_view PluralOf(Resource resource) {
  return RowOf(resource).plural;
}

std::string_view KindOf(Resource resource) {
  return RowOf(resource).kind;
}

std::string_view ApiVersionOf(Resource resource) {
  return RowOf(resource).api_version;
}

std::string_view ApiGroupOf(Resource resource) {
  const std::string_view version = ApiVersionOf(resource);
  return version.substr(0, version.find('/') == version.npos ? 0 : version.find('/'));
}

std::optional<Resource> ResourceOfKind(std::string_view kind) {
  const auto row = std::ranges::find(kRows, kind, &ResourceRow::kind);
  if (row == kRows.end()) return std::nullopt;
  return static_cast<Resource>(row - kRows.begin());
}

bool IsNamespaced(Resource resource) {
  return RowOf(resource).namespaced;
}

absl::Status CheckLabel(std::string_view name) {
  if (name.size() > kLabelBytesMax) return BadName(name, "it has more than 63 characters");
  if (!IsLabelText(name)) {
    return BadName(name,
                   "use lower-case letters, digits and '-', with a letter or a digit at both ends");
  }
  return absl::OkStatus();
}

absl::Status CheckObjectName(std::string_view name) {
  if (name.size() > kObjectNameBytesMax) return BadName(name, "it has more than 253 characters");
  for (size_t begin = 0;;) {
    const size_t end = std::min(name.find('.', begin), name.size());
    if (!IsLabelText(name.substr(begin, end - begin))) {
      return BadName(name,
                     "use lower-case letters, digits, '-' and '.', with a letter or a digit at "
                     "both ends of each part");
    }
    if (end == name.size()) return absl::OkStatus();
    begin = end + 1;
  }
}

absl::StatusOr<std::string> PathOf(const ObjectPlace& place) {
  const ResourceRow& row = RowOf(place.resource);
  const std::string_view version = ApiVersionOf(place.resource);
  std::string path =
      fmt::format("/{}/{}", ApiGroupOf(place.resource).empty() ? "api" : "apis", version);
  if (row.namespaced) {
    if (absl::Status status = CheckLabel(place.ns); !status.ok()) return status;
    path += "/namespaces/" + place.ns;
  }
  path += fmt::format("/{}", row.plural);
  if (place.name.empty()) return path;
  if (absl::Status status = CheckObjectName(place.name); !status.ok()) return status;
  path += "/" + place.name;
  if (place.subresource.empty()) return path;
  if (absl::Status status = CheckLabel(place.subresource); !status.ok()) return status;
  return path + "/" + place.subresource;
}

std::string ListQuery(const Selection& selection, uint32_t limit, std::string_view continue_token) {
  QueryText query = Begin(selection);
  if (limit > 0) query.Add("limit", fmt::format("{}", limit));
  query.AddUnlessEmpty("continue", continue_token);
  return query.Take();
}

std::string WatchQuery(const Selection& selection, std::string_view resource_version,
                       std::chrono::seconds timeout) {
  QueryText query = Begin(selection);
  query.Add("watch", "true");
  query.Add("allowWatchBookmarks", "true");
  query.Add("timeoutSeconds", fmt::format("{}", timeout.count()));
  query.AddUnlessEmpty("resourceVersion", resource_version);
  return query.Take();
}

std::string LogQueryText(const LogQuery& log) {
  QueryText query;
  query.AddUnlessEmpty("container", log.container);
  if (log.follow) query.Add("follow", "true");
  if (log.previous) query.Add("previous", "true");
  if (log.since) query.Add("sinceSeconds", fmt::format("{}", log.since->count()));
  if (log.timestamps) query.Add("timestamps", "true");
  query.AddUnlessEmpty("sinceTime", log.since_time);
  if (log.tail_lines) query.Add("tailLines", fmt::format("{}", *log.tail_lines));
  if (log.bytes_max) query.Add("limitBytes", fmt::format("{}", *log.bytes_max));
  return query.Take();
}

nlohmann::json DeleteBody(const DeleteOptions& options) {
  nlohmann::json body = {{"apiVersion", "v1"},
                         {"kind", "DeleteOptions"},
                         {"propagationPolicy", options.foreground ? "Foreground" : "Background"}};
  if (!options.uid.empty()) body["preconditions"] = {{"uid", options.uid}};
  if (options.grace) body["gracePeriodSeconds"] = options.grace->count();
  return body;
}

std::string_view ContentTypeOf(PatchKind kind) {
  switch (kind) {
    case PatchKind::kMerge:
      return "application/merge-patch+json";
    case PatchKind::kStrategicMerge:
      return "application/strategic-merge-patch+json";
    case PatchKind::kJson:
      return "application/json-patch+json";
    case PatchKind::kApply:
      return "application/apply-patch+yaml";
  }
  return "";
}

std::string_view PatchQuery(PatchKind kind) {
  return kind == PatchKind::kApply ? "?fieldManager=muster&force=true" : "";
}

nlohmann::json AccessReviewBody(std::string_view verb, Resource resource,
                                std::string_view subresource, std::string_view ns) {
  nlohmann::json attributes = {{"verb", verb},
                               {"group", ApiGroupOf(resource)},
                               {"resource", PluralOf(resource)},
                               {"namespace", ns}};
  if (!subresource.empty()) attributes["subresource"] = subresource;
  return {{"apiVersion", ApiVersionOf(Resource::kSelfSubjectAccessReviews)},
          {"kind", KindOf(Resource::kSelfSubjectAccessReviews)},
          {"spec", {{"resourceAttributes", std::move(attributes)}}}};
}

}  // namespace muster::kubernetes
