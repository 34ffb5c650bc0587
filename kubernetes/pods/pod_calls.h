#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "host/messages.h"
#include "host/resources.h"
#include "kubernetes/pods/pod_facts.h"

/// The calls that PodBook wants, and their answers. Plain values.
namespace muster::kubernetes {

struct PodCall {
  enum class Kind {
    kCreate,
    kGet,
    kDelete,
    kResize,
    /// Asks whether the Job of the run exists.
    kLookForJob,
  };
  /// The answer has the same id. No two calls have the same.
  uint64_t id = 0;
  Kind kind = Kind::kCreate;
  std::string name;
  /// For kCreate.
  StartNode start;
  /// For kDelete and kResize: only this pod.
  std::string uid;
  /// For kDelete. With 0, the API server forgets the pod at once, and does not wait for its node.
  std::chrono::seconds grace{0};
  /// For kResize.
  std::string container;
  Resources limits;
  Resources requests;
};

struct PodAnswer {
  uint64_t id = 0;
  absl::Status status;
  /// The pod in the answer to kCreate or kGet. If it belongs to this run, it was seen
  /// (PodBook::Seen) before this answer, unless it was already gone.
  std::optional<PodFacts> pod;
  /// The answer to kLookForJob.
  bool job_is_there = true;
};

}  // namespace muster::kubernetes
