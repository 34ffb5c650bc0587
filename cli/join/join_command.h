#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

struct JoinOptions {
  std::string master_address;  // "host:port"
  std::string role;            // worker, ps
  std::string name;            // "" = the machine's choice of a worker, the only free server
  std::string state_directory = "muster-join";
  std::string tls;            // folder of certificates; "" = plain text
  std::string token_file;     // "" = `token` in the state directory
  std::string data_root;      // "" = as the master sees it
  std::string snapshot_root;  // the same
  // Of a server: as ps::ListenWish.
  std::string address;
  std::string advertise;
  std::string ports = "0";
  bool insecure = false;             // plain text with other machines is allowed
  uint32_t patience_s = 600;         // how long the master may be away
  std::vector<std::string> command;  // of a worker: the trainer and its arguments
};

/// Runs one worker or server of a job on another machine until the job is over, the node was
/// drained, or a signal comes. The first signal lets the node leave well, the second ends it.
/// Returns an exit code: 0 the job is over or the node has left, 1 the node crashed too often, 2
/// bad input or a refusal, 5 the master was away for too long.
int JoinCommand(const JoinOptions& options);

}  // namespace muster
