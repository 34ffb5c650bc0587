#include "collectives/internal/dialer.h"

#include <utility>

#include "base/status.h"

namespace muster::collectives::internal {
namespace {

class GroupGreeting : public net::Connector::Greeting {
 public:
  GroupGreeting(collectives::Hello hello, bool encrypted)
      : hello_(std::move(hello)), encrypted_(encrypted) {}

  std::string Hello(bool same_machine, uint32_t ring_bytes) override {
    hello_.checked = !same_machine && !encrypted_;
    hello_.ring_bytes_max = ring_bytes;
    return EncodeFrame(FrameKind::kHello, EncodeMessage(hello_));
  }
  absl::StatusOr<size_t> OnHeader(ConstHeaderBytes bytes) override {
    MUSTER_ASSIGN_OR_RETURN(const FrameHeader header, DecodeFrameHeader(bytes));
    if (header.kind == FrameKind::kHelloReply) return header.payload_bytes;
    return absl::InvalidArgumentError("it did not answer the hello");
  }
  absl::StatusOr<uint32_t> OnAnswer(std::string_view body) override {
    MUSTER_ASSIGN_OR_RETURN(const HelloReply reply, DecodeMessage<HelloReply>(body));
    if (reply.refused.empty()) return reply.ring_bytes;
    return reply.again ? absl::UnavailableError(reply.refused)
                       : absl::PermissionDeniedError(reply.refused);
  }

 private:
  collectives::Hello hello_;
  const bool encrypted_;
};

}  // namespace

std::shared_ptr<net::Connector> Dial(boost::asio::io_context* io, DialOptions options,
                                     std::function<void(absl::StatusOr<Dialed>)> done) {
  const bool encrypted = static_cast<bool>(options.tls);
  auto connector = std::make_shared<net::Connector>(
      io->get_executor(),
      net::Connector::Options{
          .addresses = std::move(options.addresses),
          .tries = net::Connector::Tries::kUntilTimeout,
          .timeout = options.timeout,
          .socket = kSocketSettings,
          .tls = std::move(options.tls),
          .step_bytes = kStepBytes,
          .greeting = std::make_shared<GroupGreeting>(std::move(options.hello), encrypted),
          .ring_bytes = WantedRingBytes(*options.sharing),
          .spin = SpinOf(*options.sharing)},
      [done = std::move(done), encrypted](absl::StatusOr<net::Connector::Made> made) {
        if (!made.ok()) return done(made.status());
        done(Dialed{std::move(made->stream), std::move(made->address),
                    !made->same_machine && !encrypted});
      });
  connector->Start();
  return connector;
}

}  // namespace muster::collectives::internal
