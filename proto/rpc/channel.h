#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

namespace muster {

/// What gRPC calls the address "host:port". A number is taken as it is; a name is resolved at each
/// new connection, so that it may resolve late, or change.
std::string ChannelTarget(const std::string& address);

/// From now on, gRPC writes nothing to stderr by itself: whoever calls gets every error, and says
/// it in our words. GRPC_VERBOSITY brings its own words back. Thread-safe.
void QuietGrpc();

/// For every connection inside a job. A client notices within about 10 s that its server is gone
/// without a word, and connects again; idle connections stay alive in firewalls. A proxy of the
/// environment (http_proxy, https_proxy, grpc_proxy) is not used: it knows no way to the job.
void InsideJob(grpc::ChannelArguments* arguments);
/// The reverse: a server closes the connection of a client that is gone, and allows the pings of
/// InsideJob().
void DetectVanishedClients(grpc::ServerBuilder* builder);

}  // namespace muster
