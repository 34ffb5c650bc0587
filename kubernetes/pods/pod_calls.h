#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "host/messages.h"
#include "host/resources.h"
#include "kubernetes/pods/pod_facts.h"

/// What PodBook asks of the API server, and its answers. Plain values.
namespace muster::kubernetes {

struct PodCall {
  enum class Kind {
    kCreate,
    kGet,
    kDelete,
    kResize,
    /// Is the Job of the run there?
    kLookForJob,
  };
  /// Of the answer; no two calls have the same.
  uint64_t id = 0;
  Kind kind = Kind::kCreate;
  std::string name;
  /// Of kCreate.
  StartNode start;
  /// Of kDelete and kResize: this pod alone.
  std::string uid;
  /// Of kDelete; 0: the API server forgets the pod at once, and no longer waits for its node.
  std::chrono::seconds grace{0};
  /// Of kResize.
  std::string container;
  Resources limits;
  Resources requests;
};

struct PodAnswer {
  uint64_t id = 0;
  absl::Status status;
  /// The pod that a kCreate or a kGet was answered with. A pod of this run was seen (PodBook::Seen)
  /// before this, unless it was gone by then.
  std::optional<PodFacts> pod;
  /// What a kLookForJob was answered with.
  bool job_is_there = true;
};

}  // namespace muster::kubernetes
