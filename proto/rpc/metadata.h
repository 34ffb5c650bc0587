#pragma once

#include <grpcpp/server_context.h>

#include <string>

namespace muster {

/// What the caller has put under `key` into the call's metadata; empty when nothing. Not checked.
std::string MetadataOf(const grpc::ServerContextBase& call, const char* key);

}  // namespace muster
