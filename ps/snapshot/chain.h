#pragma once

#include "proto/messages/control.h"
#include "ps/engine/partition.h"

namespace muster::ps {

/// If a chain has this many files, the next snapshot is a base. So a restore reads a limited number
/// of files.
inline constexpr size_t kChainFilesMax = 8;

/// What to write after the accepted snapshot `accepted`: a base if there is none, if its chain has
/// kChainFilesMax files, or if its deltas together are larger than its base. So a base is written
/// only after as many bytes of deltas, and a restore reads at most twice the rows. Pure.
SnapshotKind NextSnapshotKind(const Manifest& accepted);

/// The manifest of the new snapshot: `file` alone for a base, behind the accepted chain for a
/// delta. The file takes the snapshot's number.
Manifest ExtendChain(const Manifest& accepted, SnapshotKind kind, SnapshotNumber number,
                     DoneSeq cut, SnapshotFile file);

}  // namespace muster::ps
