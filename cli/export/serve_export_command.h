#pragma once

#include <cstdint>
#include <string>

namespace muster {

struct ServeExportOptions {
  // By hand and for tests: other than what the cluster has.
  std::string job_file;         // "" = kInClusterJobFile
  std::string state_directory;  // "" = below kInClusterState
  std::string token_file;       // "" = kInClusterTokenFile
  std::string folder;           // for exports, "" = kInClusterExports
  uint16_t port = 0;            // of 127.0.0.1; 0 = kInClusterExportPort
};

/// `muster serve-export`: makes an export and hands it out to one client, as the entry point of a
/// pod (cli/export/export_messages.h is what they say). Returns 0 when the client has got it; 1 if
/// no client came for two minutes; 2 if a file or the port cannot be had.
int ServeExportCommand(const ServeExportOptions& options);

}  // namespace muster
