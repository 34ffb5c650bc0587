#pragma once

#include <string>

namespace muster {

struct PodNodeOptions {
  std::string role;             // worker, ps
  std::string job_file;         // "" = kInClusterJobFile
  std::string termination_log;  // "" = none
  std::string directory;        // for the log, the slot and sockets; "" = a folder in $TMPDIR
  // For tests and use by hand, these replace what the cluster has.
  std::string master_address;  // "" = the Service of the job
  std::string tls;             // folder of certificates; "" = kInClusterCertificates
  bool plain_text = false;     // uses no certificates at all
};

/// `muster node`, the entry point of a pod: runs the command of one worker or server once. It may
/// be process 1. The node's output goes to stdout, and SIGTERM is passed on to the node. When the
/// node and everything that it started have ended, its exit note (host/exit_note.h) is written to
/// the termination log. Returns the node's exit code, or 128 + its signal; 2 if the job file or the
/// environment is wrong; 126 or 127 if the command cannot be executed. Requires: this is the only
/// thread.
int PodNodeCommand(const PodNodeOptions& options);

}  // namespace muster
