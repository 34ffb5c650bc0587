#pragma once

#include "proto/messages/control.h"
#include "ps/engine/partition.h"

namespace muster::ps {

/// Files of a chain beyond which the next snapshot is a base: a bound on files to read at a
/// restore.
inline constexpr size_t kChainFilesMax = 8;

/// What to write next to the accepted snapshot `accepted`: a base when there is none, when its
/// chain has kChainFilesMax files, or when its deltas together are larger than its base. Each byte
/// of a base is thus paid for by a byte of deltas, and a restore reads at most twice the rows.
/// Pure.
SnapshotKind NextSnapshotKind(const Manifest& accepted);

/// The manifest of the new snapshot: `file` alone for a base, behind the accepted chain for a
/// delta. The file takes the snapshot's number.
Manifest ExtendChain(const Manifest& accepted, SnapshotKind kind, SnapshotNumber number,
                     DoneSeq cut, SnapshotFile file);

}  // namespace muster::ps
