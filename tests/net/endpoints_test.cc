#include "net/endpoints.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "base/descriptors.h"
#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::net {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::TempDir;

TEST(EndpointsTest, APathThatIsNotHereIsOfAnotherMachine) {
  const TempDir folder;
  const std::string path = folder.path() + "/lane";
  EXPECT_FALSE(IsUnixAddress("10.0.0.1:7100"));
  ASSERT_TRUE(IsUnixAddress("unix:" + path));
  EXPECT_FALSE(UnixEndpoint("unix:" + path).has_value());
  ASSERT_THAT(WriteFileAtomically(path, ""), IsOk());
  EXPECT_TRUE(UnixEndpoint("unix:" + path).has_value());
  EXPECT_FALSE(UnixEndpoint("unix:/" + std::string(200, 'x')).has_value())
      << "longer than a socket's";
}

TEST(EndpointsTest, ASocketOfAnotherUserIsNotTheServers) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const OwnedFd here(pair[0]), there(pair[1]);
  EXPECT_TRUE(IsOfOurUser(here.get()));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can listen as another user";
  const TempDir folder;
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
}  // namespace muster::net
