#pragma once

#include <cstdint>
#include <string>

namespace muster {

struct ServeExportOptions {
  // For tests and use by hand, these replace what the cluster has.
  std::string job_file;         // "" = kInClusterJobFile
  std::string state_directory;  // "" = below kInClusterState
  std::string token_file;       // "" = kInClusterTokenFile
  std::string folder;           // for exports, "" = kInClusterExports
  uint16_t port = 0;            // of 127.0.0.1; 0 = kInClusterExportPort
};

/// `muster serve-export`, the entry point of a pod: makes an export and sends it to one client.
/// cli/export/export_messages.h has the messages. Returns 0 when the client has all of it, 1 if no
/// client came for two minutes, and 2 if a file or the port is not available.
int ServeExportCommand(const ServeExportOptions& options);

}  // namespace muster
