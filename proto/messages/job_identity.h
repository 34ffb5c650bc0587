#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

/// The job that a call is about. Names and addresses may repeat: another state directory may hold a
/// job of the same name, and a process of another job may get the same port. Ids do not repeat.
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

/// Says if a caller without an id is accepted: yes in its first call, which asks for the id.
enum class UnnamedJob : uint8_t { kAccept, kRefuse };

struct JobPeers {
  std::string_view we;    // "this master"
  std::string_view they;  // "worker-0"
};
/// Checks that a process of job `theirs` may talk to one of job `ours`. kUnavailable names both
/// jobs if they differ. The caller treats it as if nothing listened at the address, because the
/// right process may come back. kFailedPrecondition: `theirs` has no id, and `unnamed` refuses
/// that.
absl::Status CheckJobIdentity(const JobPeers& peers, const JobIdentity& ours,
                              const JobIdentity& theirs, UnnamedJob unnamed);

/// kInvalidArgument, naming `field`, unless `id` is empty or 1 to 64 of the characters a-z A-Z 0-9
/// . _ -: it travels in headers and lies in files.
absl::Status CheckJobId(std::string_view field, std::string_view id);

}  // namespace muster
