#include "store/object_store.h"

namespace muster {

ObjectStore::Undeleted ObjectStore::DeleteAll(const std::vector<std::string>& names) {
  Undeleted left;
  for (const std::string& name : names) {
    const absl::Status status = absl::IsUnavailable(left.why) ? left.why : Delete(name);
    if (status.ok()) continue;
    left.names.push_back(name);
    left.why = status;
  }
  return left;
}

}  // namespace muster
