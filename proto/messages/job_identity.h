#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

/// Which job a conversation is about. Names and addresses come again: another state directory may
/// hold a job of the same name, and a port may be taken over by a process of another job. The id
/// does not come again.
namespace muster {

struct JobIdentity {
  /// Drawn at random when the job began; in the journal's header. Empty: not known.
  std::string id;
  /// For messages; empty: not known.
  std::string name;
  friend bool operator==(const JobIdentity&, const JobIdentity&) = default;
};

/// gRPC metadata of every call to a master: the job that the caller belongs to, as far as it knows.
inline constexpr char kJobIdMetadata[] = "muster-job-id";
inline constexpr char kJobNameMetadata[] = "muster-job";

/// Whether who knows of no job may speak: in its first call, in which it asks for the id.
enum class UnnamedJob : uint8_t { kAccept, kRefuse };

struct JobPeers {
  std::string_view we;    // "this master"
  std::string_view they;  // "worker-0"
};
/// Whether a process of job `theirs` may speak with one of job `ours`. kUnavailable names both jobs
/// when they differ: whoever asks finds no process of its job here, which is what an address says
/// at which nobody listens, and is to be treated like it: the right one may come back.
/// kFailedPrecondition when `theirs` has no id and `unnamed` refuses that.
absl::Status CheckJobIdentity(const JobPeers& peers, const JobIdentity& ours,
                              const JobIdentity& theirs, UnnamedJob unnamed);

/// kInvalidArgument, naming `field`, unless `id` is empty or 1 to 64 of the characters a-z A-Z 0-9
/// . _ -: it travels in headers and lies in files.
absl::Status CheckJobId(std::string_view field, std::string_view id);

}  // namespace muster
