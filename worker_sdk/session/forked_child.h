#pragma once

#include "absl/status/status.h"
#include "base/status.h"

namespace muster::internal {

/// This process has a session from now on, so that a child of it can be told from it. Thread-safe.
void HasSession();

/// True in a child that was forked from a process with a session. Such a child has the memory of
/// the session but none of its threads, and a mutex may be locked for ever. So it may do nothing
/// with the session, not even destroy it. The first call in a child says so on stderr. Takes no
/// lock. Thread-safe.
bool InForkedChild();

/// What a call in such a child returns.
absl::Status ForkedChildError();

}  // namespace muster::internal
