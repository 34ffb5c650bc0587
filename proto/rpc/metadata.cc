#include "proto/rpc/metadata.h"

namespace muster {

std::string MetadataOf(const grpc::ServerContextBase& call, const char* key) {
  const auto found = call.client_metadata().find(key);
  if (found == call.client_metadata().end()) return "";
  return {found->second.data(), found->second.size()};
}

}  // namespace muster
