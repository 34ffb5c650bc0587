#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/words/types.h"

/// Which files of snapshots a master may delete without having named them. Pure.
namespace muster {

/// The master incarnation that asked for the snapshot, by the file's name: 7 in
/// "p00003/e12-s7.5-base-0f.sst" and in "p00003/e12-s7.5.tmp".
std::optional<MasterIncarnation> IncarnationIn(std::string_view name);

/// Whether a starting master of incarnation `own` may delete the file, if its durable manifests
/// name the files `named`. A file of `own` or of a newer incarnation may be needed by another
/// master, which has taken the job over meanwhile. An older one is not: every manifest of a newer
/// master has only files of `named`, and files that it asked for itself. (docs/protocol.md, section
/// 11)
bool MaySweep(std::string_view name, const std::set<std::string>& named, MasterIncarnation own);

}  // namespace muster
