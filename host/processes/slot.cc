#include "host/processes/slot.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"

namespace muster {

absl::Status ResetSlot(const std::string& path) {
  // The file is new, so an earlier process that still maps the old one cannot write into it.
  ::unlink(path.c_str());
  MUSTER_FAILPOINT_OR_RETURN("slot.before-reset");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot create the slot file {}", path));
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  // The blocks are allocated now, because otherwise the worker would get a SIGBUS on a full disk.
  const int error = ::posix_fallocate(fd, 0, sizeof(SlotFile));
  if (error == 0) return absl::OkStatus();
  return ErrnoStatus(error, fmt::format("cannot size the slot file {}", path));
}

std::optional<SlotRecord> ReadSlot(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const absl::StatusOr<std::string> bytes = ReadFile(path, 4'096);
  return bytes.ok() ? ParseSlot(*bytes) : std::nullopt;
}

}  // namespace muster
