#pragma once

#include <vector>

namespace muster {

/// Closes every descriptor of this process but 0, 1, 2 and those `kept` that are not negative: what
/// others opened without close-on-exec (a library's sockets) ends here.
void CloseOthers(std::vector<int> kept);

/// Whether the descriptor is closed by an exec. One that is not open is passed over.
void SetCloseOnExec(int fd, bool on);

}  // namespace muster
