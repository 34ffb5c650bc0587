#include "proto/rpc/channel.h"

#include <grpc/support/log.h>

#include <cstdlib>

#include "base/address.h"

namespace muster {
namespace {

constexpr int kPingEveryMs = 5'000;
constexpr int kPingTimeoutMs = 5'000;
/// Clients are many, and nothing waits for the end of their connections.
constexpr int kClientPingEveryMs = 20'000;
constexpr int kClientPingTimeoutMs = 10'000;
/// Between two questions to the name service.
constexpr int kResolveEveryMs = 500;

}  // namespace

std::string ChannelTarget(const std::string& address) {
  const auto parsed = ParseHostPort(address);
  if (!parsed.ok()) return "dns:///" + address;  // the first call says what is wrong
  // So it does not wait for a resolver.
  const std::string host = parsed->host == "localhost" ? "127.0.0.1" : parsed->host;
  const std::string joined = JoinHostPort(host, parsed->port);
  if (!IsNumericHost(host)) return "dns:///" + joined;
  return (joined.starts_with('[') ? "ipv6:" : "ipv4:") + joined;
}

void QuietGrpc() {
  [[maybe_unused]] static const bool once = [] {
    if (std::getenv("GRPC_VERBOSITY") == nullptr) {
      ::gpr_set_log_function([](gpr_log_func_args*) {});
    }
    return true;
  }();
}

void InsideJob(grpc::ChannelArguments* arguments) {
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments->SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments->SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments->SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments->SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kResolveEveryMs);
}

void DetectVanishedClients(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kClientPingEveryMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kClientPingTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kPingEveryMs / 5);
  // The same for pings while a call is in progress.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

}  // namespace muster
