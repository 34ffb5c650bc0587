#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scaler/core/exit_status.h"

namespace muster {

/// One process to start: a node of the job.
struct NodeCommand {
  std::string name;                  // "worker-0"
  std::vector<std::string> command;  // program and arguments
  /// Added to the launcher's own, for the command alone: not for the process that supervises it.
  std::map<std::string, std::string> environment;
  std::string working_directory;  // "" = the launcher's own
  /// Where a worker notes what it computes; made anew before it is started. "" = none.
  std::string slot_file;
  /// Descriptors that it gets, under the same numbers; others than these it never gets.
  std::vector<int> inherited_fds;
  /// What it starts outlives it: SuperviseOptions::keep_descendants.
  bool keep_descendants = false;
};

/// What became of a node.
struct ProcessReport {
  enum class Kind : uint8_t { kStarted, kExited };
  std::string node;
  Kind kind = Kind::kStarted;
  /// Of the command itself, not of its supervisor; 0 when it could not be executed.
  pid_t pid = 0;
  ExitStatus exit;
  /// Of an exit: whether it was for memory.
  MemoryKill memory_kill = MemoryKill::kNone;
  uint64_t memory_peak_bytes = 0;   // 0 = not known
  uint64_t memory_limit_bytes = 0;  // in force at the exit; 0 = none
  /// Of an exit: the command was never executed, for the machine was short of something.
  bool shortage = false;
};

}  // namespace muster
