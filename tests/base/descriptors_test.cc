#include "base/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace muster {
namespace {

bool IsOpen(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

OwnedFd Null() {
  return OwnedFd(::open("/dev/null", O_RDONLY));
}

TEST(DescriptorsTest, AnOwnedOneClosesItself) {
  int fd = -1;
  {
    OwnedFd first = Null();
    fd = first.get();
    OwnedFd second(std::move(first));
    EXPECT_EQ(first.get(), -1);  // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(IsOpen(fd));
    OwnedFd third;
    EXPECT_EQ(third.get(), -1);
    third = std::move(second);
    EXPECT_EQ(third.get(), fd);
  }
  EXPECT_FALSE(IsOpen(fd));
}

TEST(DescriptorsTest, OthersAreClosed) {
  const OwnedFd a = Null(), kept = Null(), c = Null();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    CloseOthers({kept.get(), -1});
    const bool right = !IsOpen(a.get()) && IsOpen(kept.get()) && !IsOpen(c.get()) && IsOpen(1);
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(IsOpen(a.get())) << "of this process all stay";
}

TEST(DescriptorsTest, CloseOnExecIsSwitched) {
  const OwnedFd fd = Null();
  SetCloseOnExec(fd.get(), true);
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  SetCloseOnExec(fd.get(), false);
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  SetCloseOnExec(-1, true);
}

}  // namespace
}  // namespace muster
