#pragma once

namespace muster {

/// From now on, if a thread of this process crashes (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT), it
/// first prints its stack to stderr, so the log of a node shows the place. Then the process ends as
/// it would have without this. A signal that is ignored, or for which a trainer, its runtime or a
/// sanitizer has a handler, is left alone. Thread-safe; a second call does nothing.
void PrintStackOfCrash();

}  // namespace muster
