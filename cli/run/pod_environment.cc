#include "cli/run/pod_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "base/status.h"
#include "proto/messages/job_identity.h"

namespace muster {
namespace {

constexpr size_t kRunIdMax = 64;

/// Collects all errors, so that one message names all of them.
class Reader {
 public:
  explicit Reader(const ReadVariable& read) : read_(read) {}

  std::string Required(const std::string& name) {
    std::string value = read_(name).value_or("");
    if (value.empty()) missing_.push_back(name);
    return value;
  }
  void Refuse(std::string why) { wrong_.push_back(std::move(why)); }

  absl::Status Finish() const {
    std::vector<std::string> reasons = wrong_;
    if (!missing_.empty()) {
      reasons.insert(reasons.begin(), fmt::format("not set: {}", fmt::join(missing_, ", ")));
    }
    if (reasons.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("the environment of this pod is not that of a job on Kubernetes: {}. `muster "
                    "manifests` prints pods that have it",
                    fmt::join(reasons, "; ")));
  }

 private:
  const ReadVariable& read_;
  std::vector<std::string> missing_;
  std::vector<std::string> wrong_;
};

void TakeCommon(Reader* reader, PodEnvironment* pod) {
  pod->job_namespace = reader->Required("MUSTER_NAMESPACE");
  pod->job_id = reader->Required("MUSTER_JOB_ID");
  const absl::Status id = CheckJobId("MUSTER_JOB_ID", pod->job_id);
  if (!pod->job_id.empty() && !id.ok()) reader->Refuse(std::string(id.message()));
}

}  // namespace

std::optional<std::string> ReadEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

absl::StatusOr<PodEnvironment> ParseJobPod(const ReadVariable& read) {
  Reader reader(read);
  PodEnvironment pod;
  TakeCommon(&reader, &pod);
  pod.job = reader.Required("MUSTER_JOB_NAME");
  pod.run_id = reader.Required("MUSTER_RUN_ID");
  // The run id becomes a part of file names and labels.
  const bool plain = std::all_of(pod.run_id.begin(), pod.run_id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!plain || pod.run_id.size() > kRunIdMax) {
    reader.Refuse(fmt::format("MUSTER_RUN_ID: '{}' is no UID", pod.run_id.substr(0, 80)));
  }
  MUSTER_RETURN_IF_ERROR(reader.Finish());
  return pod;
}

absl::StatusOr<PodEnvironment> ParseNodePod(const ReadVariable& read) {
  Reader reader(read);
  PodEnvironment pod;
  TakeCommon(&reader, &pod);
  pod.node = reader.Required("MUSTER_NODE");
  const std::string start = reader.Required("MUSTER_START");
  const auto [end, error] = std::from_chars(start.data(), start.data() + start.size(), pod.start);
  const bool counts = error == std::errc() && end == start.data() + start.size();
  if (!start.empty() && (!counts || pod.start == 0)) {
    reader.Refuse(fmt::format("MUSTER_START: '{}' is not the number of a start", start));
  }
  MUSTER_RETURN_IF_ERROR(reader.Finish());
  return pod;
}

}  // namespace muster
