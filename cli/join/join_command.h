#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

struct JoinOptions {
  std::string master_address;  // "host:port"
  std::string role;            // worker, ps
  std::string
      name;  // "": a worker is named after the machine, and a server gets the only free place
  std::string state_directory = "muster-join";
  std::string tls;            // folder of certificates; "" = plain text
  std::string token_file;     // "" = `token` in the state directory
  std::string data_root;      // "" = the same path as on the master's machine
  std::string snapshot_root;  // "" = the same path as on the master's machine
  // These are for a server: see ps::ListenWish.
  std::string address;
  std::string advertise;
  std::string ports = "0";
  bool insecure = false;             // allows plain text with other machines
  uint32_t patience_s = 600;         // how long the master may be away
  std::vector<std::string> command;  // a worker's trainer with its arguments
};

/// Runs one worker or server of a job on another machine until the job is over, the node was
/// drained, or a signal comes. The first signal lets the node leave in order, the second ends it.
/// Returns an exit code: 0 if the job is over or the node has left, 1 if the node crashed too
/// often, 2 for wrong input or a refusal, 5 if the master was away for too long.
int JoinCommand(const JoinOptions& options);

}  // namespace muster
