#pragma once

#include <grpcpp/server_context.h>

#include <string>

namespace muster {

/// Metadata of every call to a master's AdminService: the job's token (base/token_file.h).
inline constexpr char kTokenMetadata[] = "muster-token";

/// The value of `key` in the call's metadata; empty if there is none. Not checked.
std::string MetadataOf(const grpc::ServerContextBase& call, const char* key);

}  // namespace muster
