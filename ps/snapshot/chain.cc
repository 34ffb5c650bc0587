#include "ps/snapshot/chain.h"

#include <utility>

namespace muster::ps {

SnapshotKind NextSnapshotKind(const Manifest& accepted) {
  if (accepted.files.empty() || accepted.files.size() >= kChainFilesMax) return SnapshotKind::kBase;
  uint64_t delta_bytes = 0;
  for (size_t i = 1; i < accepted.files.size(); ++i) delta_bytes += accepted.files[i].bytes;
  return delta_bytes > accepted.files[0].bytes ? SnapshotKind::kBase : SnapshotKind::kDelta;
}

Manifest ExtendChain(const Manifest& accepted, SnapshotKind kind, SnapshotNumber number,
                     DoneSeq cut, SnapshotFile file) {
  Manifest manifest{number, cut, {}};
  if (kind == SnapshotKind::kDelta) manifest.files = accepted.files;
  file.number = number;
  manifest.files.push_back(std::move(file));
  return manifest;
}

}  // namespace muster::ps
