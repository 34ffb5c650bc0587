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

/// The attempt of a group whose members stored the piece of its state, by the object's name: 3 in
/// "group/r1-s120-a3-c5-0", and in a temporary file of it. None: it is no such piece.
std::optional<AttemptNumber> StripeAttemptIn(std::string_view name);

/// The same as MaySweep for a piece of a group's state, if the newest attempt in the journal of the
/// starting master is `newest`. A newer master, which has taken the job over meanwhile, asks for
/// pieces in newer attempts only.
bool MaySweepStripe(std::string_view name, const std::set<std::string>& named,
                    AttemptNumber newest);

}  // namespace muster
