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

/// True if version `a` is older than `b`. Both are decimal numbers of any length (Kubernetes
/// promises this since 1.35). Any other text is older than nothing. Pure.
bool IsOlderVersion(std::string_view a, std::string_view b);

/// One step in the life of an object.
struct ObjectChange {
  enum class Kind { kAdded, kModified, kDeleted };
  Kind kind = Kind::kAdded;
  std::string name;
  std::string uid;
  /// The object as it was last seen, also after its deletion.
  std::shared_ptr<const nlohmann::json> object;
};

/// The objects of a list and a watch, by name. It takes lists, events and answers of other calls,
/// and returns changes, each once and in order. Pure; not thread-safe.
///
/// Rules: An older version of an object never replaces a newer one. An object that was deleted does
/// not come back with an older version. Neither does an object that was missing in the newest list.
/// If a name has another UID, it is another object: the old one is deleted, and then the new one is
/// added. An object that is missing in a list is deleted, unless it is newer than the list. If a
/// list is older than the one before, the cluster was restored to an earlier state, and only the
/// list counts.
class WatchCache {
 public:
  using Objects = std::map<std::string, std::shared_ptr<const nlohmann::json>, std::less<>>;
  using Changes = std::vector<ObjectChange>;

  /// Takes a whole list (all its pages), with its version.
  Changes Listed(std::vector<nlohmann::json> items, std::string version);

  /// Takes an event of a watch. After an error, list again. kOutOfRange if the version is too old,
  /// or the error in the event; kInvalidArgument if it is no event.
  absl::StatusOr<Changes> Received(const nlohmann::json& event);

  /// Takes an object from the answer of another call (create, get, patch).
  Changes Applied(nlohmann::json object);

  /// The version to watch from. Empty before the first list.
  const std::string& version() const { return version_; }
  const Objects& objects() const { return objects_; }
  /// Null if there is none.
  std::shared_ptr<const nlohmann::json> Find(std::string_view name) const;

 private:
  /// kOnlyList means that the cluster was restored, so versions do not count.
  enum class Source { kCall, kList, kOnlyList };

  void Put(nlohmann::json object, Source source, Changes* changes);
  /// True if the object, which is not in the cache, was deleted after it had this version.
  bool IsOfThePast(const std::string& uid, std::string_view version, Source source) const;
  void Remove(const nlohmann::json& object, Changes* changes);
  /// Forgets the object, and reports it as deleted.
  void Erase(std::shared_ptr<const nlohmann::json> last_seen, Changes* changes);

  Objects objects_;
  /// The UIDs of objects that were deleted since the last list, with the versions of the deletions.
  std::map<std::string, std::string> deleted_;
  std::string version_;
  std::string list_version_;
};

}  // namespace muster::kubernetes
