#pragma once

namespace muster {

/// From now on, a thread of this process that crashes (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT)
/// first prints its stack to stderr, and then ends the process as it would have: the log of a node
/// says where. A signal that is ignored, or for which a trainer, its runtime or a sanitizer has a
/// handler, is left alone. Thread-safe; the second call does nothing.
void PrintStackOfCrash();

}  // namespace muster
