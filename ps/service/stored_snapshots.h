#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ps/service/storage.h"

namespace muster::ps {

/// Opens the snapshots in a place that every server of the job sees (store/names/place.h), and the
/// warm starts in the folders that their tables name (ps/export). An error means that such a place
/// cannot exist.
absl::StatusOr<std::unique_ptr<Storage>> OpenStorage(const std::string& snapshot_place);

}  // namespace muster::ps
