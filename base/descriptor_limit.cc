#include "base/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "base/status.h"

namespace muster {

absl::StatusOr<uint64_t> RaiseDescriptorLimit(uint64_t wanted) {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return ErrnoStatus(errno, "cannot read the limit of open files");
  }
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  // Without the permission to raise it, the limit stays as it is.
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

}  // namespace muster
