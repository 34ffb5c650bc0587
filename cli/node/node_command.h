#pragma once

#include <string>

namespace muster {

struct PodNodeOptions {
  std::string role;             // worker, ps
  std::string job_file;         // "" = kInClusterJobFile
  std::string termination_log;  // "" = none
  std::string directory;        // for the log, the slot and sockets; "" = a folder in $TMPDIR
  // For tests and by hand: other than what the cluster has.
  std::string master_address;  // "" = the Service of the job
  std::string tls;             // folder of certificates; "" = kInClusterCertificates
  bool plain_text = false;     // no certificates at all
};

/// `muster node`: runs the command of one worker or server once, as the entry point of its pod
/// (it may be process 1). What the node writes goes to stdout; SIGTERM is passed on. When the node
/// has ended, and everything that it started, its exit note (host/exit_note.h) is written to the
/// termination log. Returns the node's exit code, or 128 + its signal; 2 if the job file or the
/// environment is wrong, 126 or 127 if the command cannot be executed. Requires: the only thread.
int PodNodeCommand(const PodNodeOptions& options);

}  // namespace muster
