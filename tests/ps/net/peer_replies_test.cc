#include <string>

#include "tests/ps/net/connection_fixture.h"

namespace muster::ps {
namespace connection_test {

TEST_F(ConnectionTest, PipelinedRequestsAreAnsweredInOrder) {
  const auto client = Greeted(addresses_[0]);
  for (uint64_t request = 0; request < 1000; ++request) {
    SendPull(client.get(), {request}, wire::Encoding::kFloat32, request);
  }
  for (uint64_t request = 0; request < 1000; ++request) {
    const Frame frame = client->Receive().value();
    ASSERT_EQ(frame.header.request, request);
    ASSERT_EQ(frame.values[0], static_cast<float>(request));
  }
}

}  // namespace connection_test
}  // namespace muster::ps
