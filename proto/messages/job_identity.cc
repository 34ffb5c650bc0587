#include "proto/messages/job_identity.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {
namespace {

constexpr size_t kIdBytesMax = 64;
constexpr size_t kShownBytesMax = 64;

std::string Describe(const JobIdentity& job) {
  const std::string id = job.id.substr(0, kShownBytesMax);
  return job.name.empty() ? fmt::format("job id {}", id)
                          : fmt::format("job '{}' (id {})", job.name.substr(0, kShownBytesMax), id);
}

bool IsIdCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

absl::Status CheckJobIdentity(const JobPeers& peers, const JobIdentity& ours,
                              const JobIdentity& theirs, UnnamedJob unnamed) {
  if (theirs.id.empty()) {
    if (unnamed == UnnamedJob::kAccept) return absl::OkStatus();
    return absl::FailedPreconditionError(
        fmt::format("{} does not say which job it belongs to, {} belongs to {}: build both from "
                    "the same release",
                    peers.they, peers.we, Describe(ours)));
  }
  if (theirs.id == ours.id) return absl::OkStatus();
  return absl::UnavailableError(fmt::format(
      "{} belongs to {}, {} to {}: the address is out of date, or another job has taken it over. "
      "Wait until the right one is back there, or ask for its address",
      peers.we, Describe(ours), peers.they, Describe(theirs)));
}

absl::Status CheckJobId(std::string_view field, std::string_view id) {
  if (id.size() <= kIdBytesMax && std::all_of(id.begin(), id.end(), IsIdCharacter)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("{}: a job's id has 1 to {} of the characters a-z A-Z 0-9 . _ -, this one has {} "
                  "bytes",
                  field, kIdBytesMax, id.size()));
}

}  // namespace muster
