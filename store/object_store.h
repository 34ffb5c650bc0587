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

/// Objects that are written whole and never replaced: files of a folder that several machines see,
/// or objects of a bucket of S3. A name is relative, has no "..", and has at most one slash.
namespace muster {

/// Blocking calls, for background threads. Thread-safe. An object is visible whole and is durable,
/// or it is not there. Errors name the object and say what to do. kUnavailable: the store is away
/// or busy, and the call was repeated for some seconds; the caller may try again. kNotFound: there
/// is no such object. kResourceExhausted: there is no space.
class ObjectStore {
 public:
  using NameFilter = std::function<bool(const std::string& name)>;
  virtual ~ObjectStore() = default;

  /// Where it is, for people: a path or "s3://bucket/prefix".
  const std::string& place() const { return place_; }
  /// `name` with the place before it.
  std::string Shown(std::string_view name) const { return place_ + "/" + std::string(name); }

  /// An empty local file to fill for Publish. `label`, a name, must belong to one writer only: what
  /// a crash leaves may have this name.
  virtual absl::StatusOr<LocalFile> Stage(const std::string& label) = 0;
  /// Makes the staged file, which the caller has synced, the object `name`. If a crash comes, the
  /// same object may be published again with the same bytes.
  virtual absl::Status Publish(LocalFile staged, const std::string& name) = 0;
  /// So many more bytes of a large object have gone or come. Called by any thread; must not block.
  using Moved = std::function<void(uint64_t bytes)>;
  /// As Publish, for a caller that wants to know whether it gets on.
  virtual absl::Status PublishLarge(LocalFile staged, const std::string& name,
                                    const Moved& /*moved*/) {
    return Publish(std::move(staged), name);
  }
  /// Makes an object of these bytes. kAlreadyExists: another writer was faster; its object stays.
  virtual absl::Status PutNew(const std::string& name, std::string_view bytes) = 0;
  /// kResourceExhausted if it has more than `bytes_max`.
  virtual absl::StatusOr<std::string> Get(const std::string& name, uint64_t bytes_max) = 0;
  /// The object as a file to read.
  virtual absl::StatusOr<LocalFile> Fetch(const std::string& name) = 0;
  /// As Fetch, for a caller that wants to know whether it gets on.
  virtual absl::StatusOr<LocalFile> FetchLarge(const std::string& name, const Moved& /*moved*/) {
    return Fetch(name);
  }
  /// OK, too, if there is none.
  virtual absl::Status Delete(const std::string& name) = 0;
  /// What DeleteAll could not delete, and why.
  struct Undeleted {
    std::vector<std::string> names;
    absl::Status why;  // of one of them; OK: there are none. kUnavailable: the store is away
  };
  /// Deletes many: a bucket takes a list of them in one request. The first failure ends it only if
  /// the store is away.
  virtual Undeleted DeleteAll(const std::vector<std::string>& names);
  /// The names that begin with `prefix`, sorted, with what crashed writers left visibly. Empty if
  /// the place does not exist.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& prefix) = 0;
  /// Ends what crashed writers left invisibly, of the objects whose names may be ended: no process
  /// writes them. Returns how many there were.
  virtual absl::StatusOr<uint64_t> DeleteUnfinished(const NameFilter& may_end) = 0;
  /// Whether objects can be listed and written now. Leaves no object behind; a folder may be made.
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
