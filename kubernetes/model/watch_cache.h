#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::kubernetes {

/// True if version `a` is older than `b`. Both are decimal numbers of any length (as Kubernetes
/// promises since 1.35); anything else is older than nothing. Pure.
bool IsOlderVersion(std::string_view a, std::string_view b);

/// One step in the life of an object.
struct ObjectChange {
  enum class Kind { kAdded, kModified, kDeleted };
  Kind kind = Kind::kAdded;
  std::string name;
  std::string uid;
  /// The object as last seen, also after its deletion.
  std::shared_ptr<const nlohmann::json> object;
};

/// The objects of a list and a watch, by name. Lists, events and answers of other calls go in;
/// changes come out, each once, in order. Pure; not thread-safe.
///
/// Rules. An older version of an object never replaces a newer one. An object that was deleted
/// does not come back with an older version, and neither does one that the newest list lacked. A
/// name with another UID is another object: the old one is deleted, and then the new one is added.
/// An object that a list lacks is deleted, unless it is newer than the list. If a list is older
/// than the one before, the cluster was put back to an earlier state, and the list counts alone.
class WatchCache {
 public:
  using Objects = std::map<std::string, std::shared_ptr<const nlohmann::json>, std::less<>>;
  using Changes = std::vector<ObjectChange>;

  /// A whole list (all its pages), and its version.
  Changes Listed(std::vector<nlohmann::json> items, std::string version);

  /// An event of a watch. After an error, the caller lists again: kOutOfRange (the version is too
  /// old), or what the event says; kInvalidArgument: it is no event.
  absl::StatusOr<Changes> Received(const nlohmann::json& event);

  /// An object that another call answered with (create, get, patch).
  Changes Applied(nlohmann::json object);

  /// Where to watch from; empty before the first list.
  const std::string& version() const { return version_; }
  const Objects& objects() const { return objects_; }
  /// Null if there is none.
  std::shared_ptr<const nlohmann::json> Find(std::string_view name) const;

 private:
  /// kOnlyList: the cluster was put back, so versions do not count.
  enum class Source { kCall, kList, kOnlyList };

  void Put(nlohmann::json object, Source source, Changes* changes);
  /// True if `object`, which is not held, was deleted after it had this version.
  bool IsOfThePast(const std::string& uid, std::string_view version, Source source) const;
  void Remove(const nlohmann::json& object, Changes* changes);
  /// Forgets the object, and reports it as deleted.
  void Erase(std::shared_ptr<const nlohmann::json> last_seen, Changes* changes);

  Objects objects_;
  /// UIDs of what was deleted since the last list, with the version of the deletion.
  std::map<std::string, std::string> deleted_;
  std::string version_;
  std::string list_version_;
};

}  // namespace muster::kubernetes
