#pragma once

namespace muster {

/// The exit code of `muster master` if another master has taken over the job, and of the `muster
/// run` that started it. It is no failure of the job, which continues there.
inline constexpr int kTakenOverExit = 8;

}  // namespace muster
