#include "net/endpoints.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <string>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::net {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::HasSubstr;

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

/// Listens, and returns the port of the address.
uint16_t PortOf(const absl::StatusOr<std::string>& address) {
  EXPECT_THAT(address, IsOk());
  if (!address.ok()) return 0;
  return static_cast<uint16_t>(std::stoi(address->substr(address->rfind(':') + 1)));
}

TEST(EndpointsTest, TheLongestPathOfASocketIsUsed) {
  const TempDir folder;
  const std::string path =
      folder.path() + "/" + std::string(kUnixPathMax - folder.path().size() - 1, 'x');
  boost::asio::io_context io;
  boost::asio::local::stream_protocol::acceptor acceptor(io);
  EXPECT_EQ(ListenUnix(path, &acceptor).value_or(""), "unix:" + path);
  EXPECT_TRUE(UnixEndpoint("unix:" + path).has_value());
  ASSERT_THAT(WriteFileAtomically(path + "x", ""), IsOk());
  EXPECT_FALSE(UnixEndpoint("unix:" + path + "x").has_value());
}

TEST(EndpointsTest, ASocketReplacesTheOneOfADeadProcessAndIsForItsUserOnly) {
  const TempDir folder;
  const std::string path = folder.path() + "/lane";
  boost::asio::io_context io;
  boost::asio::local::stream_protocol::acceptor dead(io), acceptor(io);
  ASSERT_THAT(ListenUnix(path, &dead), IsOk());
  dead.close();
  ASSERT_THAT(ListenUnix(path, &acceptor), IsOk());
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  boost::asio::local::stream_protocol::socket client(io);
  boost::system::error_code error;
  client.connect(boost::asio::local::stream_protocol::endpoint(path), error);
  EXPECT_FALSE(error) << error.message();
}

TEST(EndpointsTest, APathWithoutAFolderIsNamed) {
  boost::asio::io_context io;
  boost::asio::local::stream_protocol::acceptor acceptor(io);
  EXPECT_THAT(ListenUnix("/nowhere/lane", &acceptor),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("unix:/nowhere/lane")));
}

TEST(EndpointsTest, TheFirstFreePortOfTheRangeIsTakenAndAFullRangeIsNamed) {
  boost::asio::io_context io;
  using Acceptor = boost::asio::ip::tcp::acceptor;
  Acceptor other(io), first(io), second(io), third(io);
  // A port that the kernel chose, and the one after it, if that is free, too.
  uint16_t taken = 0, last = 0;
  for (int tries = 0; tries < 50 && last == 0; ++tries) {
    other.close();
    taken = PortOf(ListenTcp({"127.0.0.1", "127.0.0.1", {0, 0}}, &other));
    ASSERT_NE(taken, 0);
    if (taken == 65'535) continue;
    last = static_cast<uint16_t>(taken + 1);
    if (!ListenTcp({"127.0.0.1", "127.0.0.1", {last, last}}, &first).ok()) last = 0;
  }
  ASSERT_NE(last, 0);
  first.close();
  EXPECT_EQ(ListenTcp({"127.0.0.1", "example.org", {taken, last}}, &second).value_or(""),
            "example.org:" + std::to_string(last))
      << "the last port of the range is one of it";
  EXPECT_THAT(ListenTcp({"127.0.0.1", "127.0.0.1", {taken, last}}, &third),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("127.0.0.1, ports " + std::to_string(taken) + "-" +
                                 std::to_string(last))));
  EXPECT_FALSE(third.is_open());
}

TEST(EndpointsTest, APlaceThatIsNotHereIsNamedAtOnce) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor acceptor(io);
  EXPECT_THAT(ListenTcp({"nonsense", "x", {0, 0}}, &acceptor),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nonsense")));
  // Of documentation, so of no machine.
  EXPECT_THAT(ListenTcp({"192.0.2.1", "x", {1, 65'535}}, &acceptor),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("192.0.2.1, ports 1-65535")));
}

TEST(EndpointsTest, APortWhoseConnectionsStillEndIsTakenAgainAtOnce) {
  boost::asio::io_context io;
  using boost::asio::ip::tcp;
  tcp::acceptor before(io), after(io);
  const uint16_t port = PortOf(ListenTcp({"127.0.0.1", "127.0.0.1", {0, 0}}, &before));
  before.close();
  ASSERT_EQ(PortOf(ListenTcp({"127.0.0.1", "127.0.0.1", {port, port}}, &before)), port);
  tcp::socket client(io);
  client.connect({boost::asio::ip::make_address("127.0.0.1"), port});
  tcp::socket served = before.accept();
  // Who closes first keeps the port until the network has forgotten the connection.
  served.close();
  before.close();
  client.close();
  EXPECT_EQ(PortOf(ListenTcp({"127.0.0.1", "127.0.0.1", {port, port}}, &after)), port);
}

}  // namespace
}  // namespace muster::net
