#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ps/net/internal/peer_connection.h"
#include "ps/net/lane.h"
#include "tests/ps/net/fake_handler.h"
#include "tests/ps/net/wire_client.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::ps {
namespace connection_test {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeHandler;
using testing::Frame;
using ::testing::HasSubstr;
using testing::WireClient;
using wire::Kind;
using wire::PartCode;

/// A lane with the fake handler behind a UNIX socket, a TCP port, and the UNIX socket once more for
/// a client that shares memory.
class ConnectionTest : public ::testing::Test {
 protected:
  explicit ConnectionTest(LaneLimits limits = {})
      : lane_({.name = "ps-0.0",
               .unix_path = dir_.File("s"),
               .limits = Sleeping(limits),
               .clock = &clock_},
              &handler_) {
    addresses_ = lane_.Listen().value();
    addresses_.push_back("ring:" + dir_.File("s"));
    lane_.Start();
  }
  /// While the clock stands still, no spin would ever be long enough.
  static LaneLimits Sleeping(LaneLimits limits) {
    limits.spin_max = {};
    return limits;
  }
  /// A client that has said hello.
  std::unique_ptr<WireClient> Greeted(const std::string& address) {
    auto client = std::make_unique<WireClient>(address);
    client->SendHello("job");
    EXPECT_EQ(client->Receive().value().header.kind, Kind::kHelloReply);
    return client;
  }
  /// The values of a pull of `keys` from partition 1, by `client`.
  static std::vector<float> Pull(WireClient* client, const std::vector<uint64_t>& keys,
                                 wire::Encoding encoding = wire::Encoding::kFloat32) {
    SendPull(client, keys, encoding);
    return client->Receive().value().values;
  }
  static void SendPull(WireClient* client, const std::vector<uint64_t>& keys,
                       wire::Encoding encoding = wire::Encoding::kFloat32, uint64_t request = 1) {
    const wire::Parts parts(1, 1, {{.table = 1, .keys = static_cast<uint32_t>(keys.size())}});
    client->Send(PullHeader(1, encoding, request), wire::EncodePull(parts), keys);
  }
  static wire::Header PullHeader(uint32_t parts, wire::Encoding encoding = wire::Encoding::kFloat32,
                                 uint64_t request = 1) {
    wire::Header header;
    header.kind = Kind::kPull;
    header.parts = parts;
    header.encoding = encoding;
    header.request = request;
    return header;
  }

  /// Lets the time pass, for connections of this kind that were made before.
  void Pass(const std::string& address, std::chrono::nanoseconds time) {
    Greeted(address);  // accepted in turn: so are those before it
    clock_.Advance(time);
    lane_.EndOverdue();
  }

  ::muster::testing::TempDir dir_;
  ::muster::testing::FakeClock clock_;
  FakeHandler handler_;
  Lane lane_;
  std::vector<std::string> addresses_;
};

}  // namespace connection_test
}  // namespace muster::ps
