#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"

namespace muster::testing {

/// Lets this process open `more` files besides those that it has open, as long as it lives. kNone:
/// not even in the place of one that is closed meanwhile.
class DescriptorLimit {
 public:
  static constexpr int kNone = -1;

  explicit DescriptorLimit(int more) {
    MUSTER_CHECK(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit limit = before_;
    limit.rlim_cur = 3;
    if (more != kNone) {
      const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      ::close(next);
      limit.rlim_cur = static_cast<rlim_t>(next + more);
    }
    MUSTER_CHECK(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace muster::testing
