#pragma once

#include <memory>
#include <string>

#include "ps/service/storage.h"

namespace muster::ps {

/// Snapshots in a directory that every server of the job sees (ps/snapshot), warm starts in the
/// folders that their tables name (ps/export).
std::unique_ptr<Storage> MakeDiskStorage(const std::string& snapshot_directory);

}  // namespace muster::ps
