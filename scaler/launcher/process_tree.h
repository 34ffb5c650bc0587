#pragma once

#include <sys/types.h>

#include <vector>

namespace muster {

/// The pids of all living descendants of the calling process that are not in `spared` and not below
/// a process of it, from one scan of /proc. Zombies are left out.
std::vector<pid_t> Descendants(const std::vector<pid_t>& spared);

/// Kills (SIGKILL) and reaps descendants, except those in `spared` and what is below them, until a
/// scan finds none. Requires: the caller is a sub-reaper, so that a grandchild whose parent dies
/// becomes its child, however many sessions it opened. Children in `spared` are not reaped.
void KillDescendants(const std::vector<pid_t>& spared);

}  // namespace muster
