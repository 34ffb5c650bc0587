#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/status/job_status.h"
#include "scaler/decision/decider.h"

namespace muster::scaler {

/// The figure that says which epoch ended, from 1.
inline constexpr const char* kEpochFigure = "epoch";

/// Records as events what only the master's answers show: that `muster run` had to start the master
/// or the scaler again, that the master is silent, and that an epoch ended.
///
/// Each end is recorded once, whichever scaler records it. If epochs are short, one event stands
/// for several. Deterministic except for the sink; a value with one owner; not thread-safe.
class StatusWatch {
 public:
  struct Options {
    /// If the master has not answered for this long, it is called silent.
    std::chrono::milliseconds silent_after{2'000};
    /// The shortest time between two events about epochs of the same dataset.
    std::chrono::seconds epochs_apart{60};
  };
  StatusWatch(const Options& options, EventSink sink) : options_(options), sink_(std::move(sink)) {}

  /// Takes over the events of earlier scalers. Events before `run_began` belong to earlier runs.
  void Adopt(const std::vector<rest::Event>& events, WallTime run_began);
  /// An answer of the master.
  void OnStatus(const JobStatus& status, TimePoint now);
  /// Call it about once a second, also while no answer comes.
  void OnTime(TimePoint now);

 private:
  struct Epochs {
    uint32_t ended = 0;  // epochs up to this one, from 1, are recorded
    std::optional<TimePoint> told_at;
  };
  void TellEnd(const NodeStatus& node);
  void TellEpochs(const DatasetStatus& dataset, bool over, TimePoint now);

  Options options_;
  EventSink sink_;
  std::map<std::string, uint64_t>
      ends_;  // of master and scaler: the newest start whose end is recorded
  std::map<std::string, Epochs> epochs_;  // by dataset
  std::optional<TimePoint> answered_at_;
  bool silent_ = false;
  bool over_ = false;
};

}  // namespace muster::scaler
