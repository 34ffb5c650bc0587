#include "store/local_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"

namespace muster {

absl::StatusOr<LocalFile> LocalFile::Nameless() {
  std::string path = TemporaryFolder() + "/muster-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot create the temporary file {}", path));
  ::unlink(path.c_str());
  return LocalFile(fmt::format("/proc/self/fd/{}", fd), fd, false);
}

LocalFile::~LocalFile() {
  if (remove_) {
    MUSTER_FAILPOINT("snapshot.before-remove");
    RemoveFile(path_);
  }
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace muster
