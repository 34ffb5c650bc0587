#include "kubernetes/model/watch_cache.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kubernetes/model/api_error.h"
#include "kubernetes/model/json_access.h"

namespace muster::kubernetes {
namespace {

bool IsNumber(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool IsOlderVersion(std::string_view a, std::string_view b) {
  if (!IsNumber(a) || !IsNumber(b)) return false;
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

WatchCache::Changes WatchCache::Listed(std::vector<nlohmann::json> items, std::string version) {
  Changes changes;
  const bool put_back = IsOlderVersion(version, list_version_);
  std::set<std::string> present;
  for (const nlohmann::json& item : items) present.insert(IdentityOf(item).name);
  std::vector<std::string> missing;
  for (const auto& [name, object] : objects_) {
    const bool newer = IsOlderVersion(version, IdentityOf(*object).resource_version);
    if (!present.contains(name) && (put_back || !newer)) missing.push_back(name);
  }
  for (const std::string& name : missing) Erase(objects_.at(name), &changes);
  const Source source = put_back ? Source::kOnlyList : Source::kList;
  for (nlohmann::json& item : items) Put(std::move(item), source, &changes);
  // From here on, the version of the list shows which deletions came before it.
  std::erase_if(deleted_, [&](const auto& entry) {
    return put_back || !IsOlderVersion(version, entry.second);
  });
  version_ = version;
  list_version_ = std::move(version);
  return changes;
}

absl::StatusOr<WatchCache::Changes> WatchCache::Received(const nlohmann::json& event) {
  const std::string type = TextAt(event, {"type"});
  const nlohmann::json& object = ValueAt(event, {"object"});
  if (type == "ERROR") return ToStatus(ReadApiError(500, ToText(object), ""));
  const ObjectIdentity identity = IdentityOf(object);
  const bool known = type == "ADDED" || type == "MODIFIED" || type == "DELETED";
  if (!known && type != "BOOKMARK") {
    return absl::InvalidArgumentError("the watch sent something that is no event");
  }
  if (identity.resource_version.empty() || (known && identity.name.empty())) {
    return absl::InvalidArgumentError("the watch sent an object without a name or a version");
  }
  Changes changes;
  if (type == "DELETED") {
    Remove(object, &changes);
  } else if (known) {
    Put(object, Source::kCall, &changes);
  }
  // A watch sends events in the order of their versions. A bookmark has only a version.
  if (!IsOlderVersion(identity.resource_version, version_)) version_ = identity.resource_version;
  return changes;
}

WatchCache::Changes WatchCache::Applied(nlohmann::json object) {
  Changes changes;
  if (!IdentityOf(object).name.empty()) Put(std::move(object), Source::kCall, &changes);
  return changes;
}

std::shared_ptr<const nlohmann::json> WatchCache::Find(std::string_view name) const {
  const auto found = objects_.find(name);
  return found == objects_.end() ? nullptr : found->second;
}

bool WatchCache::IsOfThePast(const std::string& uid, std::string_view version,
                             Source source) const {
  if (source == Source::kOnlyList) return false;
  const auto gone = deleted_.find(uid);
  if (gone != deleted_.end() && !IsOlderVersion(gone->second, version)) return true;
  return source == Source::kCall && IsOlderVersion(version, list_version_);
}

void WatchCache::Put(nlohmann::json object, Source source, Changes* changes) {
  const ObjectIdentity now = IdentityOf(object);
  auto kind = ObjectChange::Kind::kAdded;
  if (const auto found = objects_.find(now.name); found != objects_.end()) {
    const ObjectIdentity before = IdentityOf(*found->second);
    const bool same = before.uid == now.uid;
    const bool older = IsOlderVersion(now.resource_version, before.resource_version);
    if (older && source != Source::kOnlyList) return;
    if (same && now.resource_version == before.resource_version) return;
    if (same) {
      kind = ObjectChange::Kind::kModified;
    } else {
      Erase(found->second, changes);
    }
  } else if (IsOfThePast(now.uid, now.resource_version, source)) {
    return;
  }
  auto shared = std::make_shared<const nlohmann::json>(std::move(object));
  objects_[now.name] = shared;
  changes->push_back({.kind = kind, .name = now.name, .uid = now.uid, .object = std::move(shared)});
}

void WatchCache::Remove(const nlohmann::json& object, Changes* changes) {
  const ObjectIdentity gone = IdentityOf(object);
  deleted_[gone.uid] = gone.resource_version;
  const auto found = objects_.find(gone.name);
  if (found == objects_.end()) return;
  const ObjectIdentity held = IdentityOf(*found->second);
  if (held.uid != gone.uid || IsOlderVersion(gone.resource_version, held.resource_version)) return;
  Erase(std::make_shared<const nlohmann::json>(object), changes);
}

void WatchCache::Erase(std::shared_ptr<const nlohmann::json> last_seen, Changes* changes) {
  const ObjectIdentity gone = IdentityOf(*last_seen);
  deleted_.try_emplace(gone.uid, gone.resource_version);
  objects_.erase(gone.name);
  changes->push_back({.kind = ObjectChange::Kind::kDeleted,
                      .name = gone.name,
                      .uid = gone.uid,
                      .object = std::move(last_seen)});
}

}  // namespace muster::kubernetes
