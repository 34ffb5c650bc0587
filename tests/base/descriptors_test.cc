#include "base/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include "tests/support/temp_dir.h"

namespace muster {
namespace {

bool IsOpen(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

OwnedFd Null() {
  return OwnedFd(::open("/dev/null", O_RDONLY));
}

TEST(ProcessDescriptorTest, ItsProcessIsSignalledAndSeenToEnd) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const OwnedFd process = OpenProcess(child);
  ASSERT_GE(process.get(), 0);
  pollfd ended = {process.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 0), 0);
  EXPECT_TRUE(SignalProcess(process, SIGKILL));
  EXPECT_EQ(::poll(&ended, 1, -1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  // Its number may be another process's now, so both calls say that it is gone.
  EXPECT_FALSE(SignalProcess(process, SIGKILL));
  EXPECT_EQ(errno, ESRCH);
  EXPECT_EQ(OpenProcess(child).get(), -1);
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

TEST(DescriptorsTest, AReleasedOneStaysOpen) {
  int fd = -1;
  {
    OwnedFd owned = Null();
    fd = owned.Release();
    EXPECT_EQ(owned.get(), -1);
  }
  EXPECT_TRUE(IsOpen(fd));
  const OwnedFd again(fd);
}

TEST(DescriptorsTest, AWakeIsSeenUntilItIsCleared) {
  const WakeFd wake;
  const auto is_readable = [&wake] {
    pollfd poll_fd = {wake.get(), POLLIN, 0};
    return ::poll(&poll_fd, 1, 0) == 1;
  };
  EXPECT_FALSE(is_readable());
  EXPECT_EQ(::fcntl(wake.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  wake.Clear();  // does not block
  wake.Wake();
  wake.Wake();
  EXPECT_TRUE(is_readable());
  wake.Clear();
  EXPECT_FALSE(is_readable());
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
  EXPECT_TRUE(SetCloseOnExec(fd.get(), true));
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  SetCloseOnExec(fd.get(), false);
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(SetCloseOnExec(-1, true));
  EXPECT_FALSE(SetCloseOnExec(1'000'000, true));
}

TEST(DescriptorsTest, ASocketOfAnotherUserIsNotTheServers) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const OwnedFd here(pair[0]), there(pair[1]);
  EXPECT_TRUE(IsOfOurUser(here.get()));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can listen as another user";
  const testing::TempDir folder;
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = folder.path() + "/lane";
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  const OwnedFd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(listener.get(), generic, sizeof(address)), 0);
  ASSERT_EQ(::seteuid(65'534), 0);
  const int listens = ::listen(listener.get(), 1);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(listens, 0);
  const OwnedFd client(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::connect(client.get(), generic, sizeof(address)), 0);
  EXPECT_FALSE(IsOfOurUser(client.get()));
}

}  // namespace
}  // namespace muster
