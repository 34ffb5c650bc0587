#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "base/address.h"
#include "net/endpoints.h"
#include "worker_sdk/net/internal/lane_connection.h"

namespace muster::sdk::net_internal {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

}  // namespace

void LaneConnection::TryAddress(size_t index) {
  if (index >= target_.addresses.size()) {
    return Close(last_error_.empty() ? "it has no address that can be used here" : last_error_);
  }
  address_ = index;
  const std::string& address = target_.addresses[index];
  if (net::IsUnixAddress(address)) {
    const auto endpoint = net::UnixEndpoint(address);
    if (!endpoint || sharing_->tcp_only.contains(target_.lane)) return TryAddress(index + 1);
    return TryEndpoints({*endpoint}, 0);
  }
  const absl::StatusOr<HostPort> place = ParseHostPort(address);
  if (!place.ok()) return TryAddress(index + 1);
  error_code error;
  const asio::ip::address number = asio::ip::make_address(place->host, error);
  if (!error) return TryEndpoints({asio::ip::tcp::endpoint(number, place->port)}, 0);
  // Asked at each connection, because a server may have moved.
  resolver_.async_resolve(place->host, std::to_string(place->port),
                          [self = shared_from_this()](error_code failed, const auto& results) {
                            if (self->closed_) return;
                            if (failed) return self->NextAddress(failed);
                            std::vector<Stream::endpoint> endpoints;
                            for (const auto& result : results)
                              endpoints.emplace_back(result.endpoint());
                            self->TryEndpoints(std::move(endpoints), 0);
                          });
}

void LaneConnection::NextAddress(const error_code& error) {
  last_error_ = fmt::format("{}: {}", target_.addresses[address_], error.message());
  TryAddress(address_ + 1);
}

void LaneConnection::TryEndpoints(std::vector<Stream::endpoint> endpoints, size_t next) {
  const Stream::endpoint endpoint = endpoints[next];
  socket_.async_connect(endpoint, [self = shared_from_this(), endpoints = std::move(endpoints),
                                   next](error_code error) mutable {
    if (self->closed_) return;
    if (!error) return self->OnConnected();
    error_code ignored;
    self->socket_.close(ignored);
    if (next + 1 < endpoints.size()) return self->TryEndpoints(std::move(endpoints), next + 1);
    self->NextAddress(error);
  });
}

}  // namespace muster::sdk::net_internal
