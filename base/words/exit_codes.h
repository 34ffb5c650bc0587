#pragma once

namespace muster {

/// The exit code of `muster master`, and of the `muster run` that started it, when another master
/// has taken over the job. It is no failure of the job, which continues there.
inline constexpr int kTakenOverExit = 8;

}  // namespace muster
