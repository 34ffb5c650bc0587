#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/show/output.h"
#include "cli/verify/verify_job.h"

namespace muster::verify {

struct VerifyOptions {
  static constexpr uint32_t kKillsMax = 2'000;
  static constexpr uint32_t kPausesMax = 500;
  static constexpr uint32_t kNodesMax = 16;  // for each role
  static constexpr uint32_t kPartitionsMax = 4'096;

  JobKind kind = JobKind::kServers;
  uint32_t kills = 12;
  uint32_t pauses = 3;
  std::optional<uint64_t> seed;     // none: from the clock
  std::optional<uint32_t> workers;  // none: WorkersOf says how many
  uint32_t servers = 2;
  uint32_t partitions = 64;
  std::string directory;  // "" = the folder for temporary files
  bool keep = false;
  bool progress = true;
  OutputFormat output = OutputFormat::kText;
  std::string trainer;      // "" = the one that belongs to this program
  std::string planted_bug;  // for tests: passed to `muster run`
};

/// The user's number, or else 2, or 3 for a group.
uint32_t WorkersOf(const VerifyOptions& options);
/// InvalidArgument if two options do not fit together.
absl::Status CheckOptions(const VerifyOptions& options);

/// Where the worker program may be: beside the program in a build folder, or in libexec if it is
/// installed.
std::vector<std::string> WorkerPlaces(const std::string& program);
/// The first of `places` that can be executed. NotFound names all of them.
absl::StatusOr<std::string> FindWorker(const std::vector<std::string>& places);

/// `muster verify`: runs a job whose result is known, kills and pauses its processes, and proves
/// that nothing is lost or doubled. For a group, it first runs the same job without faults, and
/// also proves that both runs have the same weights after every step. Returns the exit code.
/// Requires: called on the main thread before other threads exist, because it blocks signals.
int VerifyCommand(const VerifyOptions& options);

}  // namespace muster::verify
