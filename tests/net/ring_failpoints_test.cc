// A peer that stops, or dies, at each step of its rings.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/failpoint.h"
#include "tests/net/ring_fixture.h"
#include "tests/net/stream_fixture.h"

#if MUSTER_WITH_FAILPOINTS

namespace muster::net {
namespace {

using stream_test::kSmallRing;
using stream_test::Opened;

/// More than a ring takes, so that every side waits for room and for bytes.
std::vector<char> Message() {
  std::vector<char> bytes(kSmallRing + kSmallRing / 2);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 251);
  return bytes;
}

/// Writes a message, reads one, and so on, until the stream ends; the other side begins by reading.
class Talker {
 public:
  explicit Talker(ByteStream* stream) : stream_(stream) {}

  void Write() {
    stream_->Write({boost::asio::buffer(sent_)}, [this](const auto& error, size_t /*bytes*/) {
      if (error) return End();
      Read();
    });
  }
  void Read() {
    std::ranges::fill(into_, 0);
    stream_->Read({boost::asio::buffer(into_)}, [this](const auto& error, size_t /*bytes*/) {
      if (error) return End();
      wrong_ += into_ != sent_;
      ++read_;
      Write();
    });
  }

  bool ended() const { return ended_; }
  size_t read() const { return read_; }
  size_t wrong() const { return wrong_; }

 private:
  void End() { ended_ = true; }

  ByteStream* const stream_;
  const std::vector<char> sent_ = Message();
  std::vector<char> into_ = std::vector<char>(sent_.size());
  bool ended_ = false;
  size_t read_ = 0;
  size_t wrong_ = 0;
};

class RingFailpointsTest : public ::testing::TestWithParam<const char*> {
 protected:
  RingFailpointsTest() : sockets_(stream_test::ConnectedSockets(&io_)) {}
  ~RingFailpointsTest() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  /// Starts the peer, which does `action` when it comes by this test's step for the third time.
  void Start(const std::string& action) {
    RingMemory made = RingMemory::Make(kSmallRing).value();
    child_ = ::fork();
    if (child_ == 0) Peer(Opened(made), std::string(GetParam()) + "=" + action + "@3");
    boost::system::error_code ignored;
    sockets_.second.close(ignored);
    stream_ = std::make_unique<RingStream>(std::move(sockets_.first), std::move(made),
                                           RingStream::Side::kMadeIt, RingStream::Spin{});
    talker_.emplace(stream_.get());
    talker_->Write();
  }

  [[noreturn]] void Peer(RingMemory memory, const std::string& actions) {
    static_cast<void>(ArmFailpoints({.actions = actions}));
    // The parent's event loop is not touched: both would change the one that the kernel has.
    boost::asio::io_context io{1};
    Socket socket(io, sockets_.second.local_endpoint().protocol(),
                  ::dup(sockets_.second.native_handle()));
    RingStream stream(std::move(socket), std::move(memory), RingStream::Side::kOpenedIt,
                      RingStream::Spin{});
    Talker talker(&stream);
    talker.Read();
    while (!talker.ended()) io.run_one();
    ::_exit(0);
  }

  /// Does what there is to do until the peer has changed its state; the state.
  int RunUntilPeerStops() {
    int status = 0;
    while (::waitpid(child_, &status, WUNTRACED | WNOHANG) == 0) {
      io_.run_one_for(std::chrono::milliseconds(1));
    }
    return status;
  }

  boost::asio::io_context io_{1};
  std::pair<Socket, Socket> sockets_;
  pid_t child_ = -1;
  std::unique_ptr<RingStream> stream_;
  std::optional<Talker> talker_;
};

TEST_P(RingFailpointsTest, APeerThatStopsThereHarmsNobodyAndGoesOn) {
  Start("stop");
  ASSERT_TRUE(WIFSTOPPED(RunUntilPeerStops()));
  while (io_.poll() > 0) {
  }  // comes to rest: nothing waits for the peer in a loop
  EXPECT_FALSE(talker_->ended());
  const size_t before = talker_->read();
  ASSERT_EQ(::kill(child_, SIGCONT), 0);
  while (talker_->read() < before + 20) MUSTER_CHECK(io_.run_one() > 0);
  EXPECT_EQ(talker_->wrong(), 0);
  EXPECT_EQ(stream_->failure(), "");
}

TEST_P(RingFailpointsTest, APeerThatDiesThereEndsTheStream) {
  Start("crash");
  ASSERT_TRUE(WIFSIGNALED(RunUntilPeerStops()));
  while (!talker_->ended()) MUSTER_CHECK(io_.run_one() > 0);
  EXPECT_EQ(talker_->wrong(), 0);
  EXPECT_EQ(stream_->failure(), "");
}

/// Every step that there is, so that a new one is tested without being named here.
std::vector<const char*> Steps() {
  static const std::vector<FailpointName> names = FailpointNames();
  std::vector<const char*> steps;
  for (const FailpointName& known : names) {
    if (known.name.starts_with("ring.")) steps.push_back(known.name.c_str());
  }
  return steps;
}

INSTANTIATE_TEST_SUITE_P(Steps, RingFailpointsTest, ::testing::ValuesIn(Steps()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

}  // namespace
}  // namespace muster::net

#endif
