#include "proto/status/job_state.h"

#include <array>

namespace muster {
namespace {

constexpr std::array<std::string_view, 8> kJobStates = {
    "unknown", "running", "draining", "drained", "succeeded", "failed", "cancelled", "stopped"};

}  // namespace

std::string_view ToString(JobState state) {
  return kJobStates[static_cast<size_t>(state)];
}

std::span<const std::string_view> WordsOf(JobState /*state*/) {
  return kJobStates;
}

}  // namespace muster
