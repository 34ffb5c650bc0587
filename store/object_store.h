#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/local_file.h"

/// Objects that are written as a whole and never replaced: files of a folder that several machines
/// see, or objects in a bucket of S3. A name is relative, has no "..", and has at most one slash.
namespace muster {

/// Calls block, and are meant for background threads. Thread-safe. An object is either visible as a
/// whole and durable, or it does not exist. Errors name the object and say what to do.
/// kUnavailable: the store is away or busy, and the call was repeated for some seconds; the caller
/// may try again. kNotFound: there is no such object. kResourceExhausted: there is no space.
class ObjectStore {
 public:
  using NameFilter = std::function<bool(const std::string& name)>;
  virtual ~ObjectStore() = default;

  /// The place for people: a path or "s3://bucket/prefix".
  const std::string& place() const { return place_; }
  /// The place and `name`, for people.
  std::string Shown(std::string_view name) const { return place_ + "/" + std::string(name); }

  /// An empty local file, to be filled for Publish. `label` is a name that must belong to one
  /// writer only, because files that a crash leaves may have it.
  virtual absl::StatusOr<LocalFile> Stage(const std::string& label) = 0;
  /// Turns the staged file, which the caller has synced, into the object `name`. After a crash, the
  /// same object may be published again with the same bytes.
  virtual absl::Status Publish(LocalFile staged, const std::string& name) = 0;
  /// This many more bytes of a large object were moved. Any thread may call it. It must not block.
  using Moved = std::function<void(uint64_t bytes)>;
  /// The same as Publish, for a caller that wants to see progress.
  virtual absl::Status PublishLarge(LocalFile staged, const std::string& name,
                                    const Moved& /*moved*/) {
    return Publish(std::move(staged), name);
  }
  /// Makes an object of these bytes. kAlreadyExists if another writer was faster; the other object
  /// stays, and is durable.
  virtual absl::Status PutNew(const std::string& name, std::string_view bytes) = 0;
  /// Returns the bytes of an object. kResourceExhausted if it has more than `bytes_max`.
  virtual absl::StatusOr<std::string> Get(const std::string& name, uint64_t bytes_max) = 0;
  /// The object as a file to read.
  virtual absl::StatusOr<LocalFile> Fetch(const std::string& name) = 0;
  /// The same as Fetch, for a caller that wants to see progress.
  virtual absl::StatusOr<LocalFile> FetchLarge(const std::string& name, const Moved& /*moved*/) {
    return Fetch(name);
  }
  /// Deletes an object. OK if there is none.
  virtual absl::Status Delete(const std::string& name) = 0;
  /// The objects that DeleteAll could not delete, and why.
  struct Undeleted {
    std::vector<std::string> names;
    absl::Status why;  // for one of them; OK: there are none. kUnavailable: the store is away
  };
  /// Deletes many objects. A bucket takes a list of them in one request. A failure ends the call
  /// only if the store is away.
  virtual Undeleted DeleteAll(const std::vector<std::string>& names);
  /// The names that begin with `prefix`, sorted. Visible leftovers of crashed writers are among
  /// them. Empty if the place does not exist.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) = 0;
  /// Removes what crashed writers have left on the way to objects: unfinished uploads, files of
  /// PutNew. But only those of objects for which `may_end` is true, because no process writes them.
  /// Staged files keep the label of their writer: they are listed. Returns how many there were.
  virtual absl::StatusOr<uint64_t> DeleteUnfinished(const NameFilter& may_end) = 0;
  /// OK if objects can be listed and written now. It leaves no object behind, but may make a
  /// folder.
  virtual absl::Status CheckWritable() = 0;

 protected:
  explicit ObjectStore(std::string place) : place_(std::move(place)) {}

 private:
  const std::string place_;
};

/// A folder, or a bucket (store/names/place.h). Does not touch it: only a place that cannot be one
/// is an error.
absl::StatusOr<std::unique_ptr<ObjectStore>> OpenStore(const std::string& place);

/// Folders are opened without an error.
std::unique_ptr<ObjectStore> OpenDirectoryStore(const std::string& directory);

}  // namespace muster
