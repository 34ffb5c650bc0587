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

/// Tells as events what shows only in the master's answers: that the master or the scaler ended and
/// `muster run` started it again, that the master is silent, and that an epoch ended.
///
/// One end is one event, whichever scaler tells it. If epochs are short, one event stands for
/// several. Deterministic but for the sink; a value with one owner; not thread-safe.
class StatusWatch {
 public:
  struct Options {
    /// A master is called silent when it has not answered for so long.
    std::chrono::milliseconds silent_after{2'000};
    /// Between two events about epochs of the same dataset.
    std::chrono::seconds epochs_apart{60};
  };
  StatusWatch(const Options& options, EventSink sink) : options_(options), sink_(std::move(sink)) {}

  /// The events of the scalers before this one. Those before `run_began` are of earlier runs.
  void Adopt(const std::vector<rest::Event>& events, WallTime run_began);
  /// An answer of the master.
  void OnStatus(const JobStatus& status, TimePoint now);
  /// About once a second, also while no answer comes.
  void OnTime(TimePoint now);

 private:
  struct Epochs {
    uint32_t ended = 0;  // from 1; those up to it are told
    std::optional<TimePoint> told_at;
  };
  void TellEnd(const NodeStatus& node);
  void TellEpochs(const DatasetStatus& dataset, bool over, TimePoint now);

  Options options_;
  EventSink sink_;
  std::map<std::string, uint64_t>
      ends_;  // of master and scaler: the newest start whose end is told
  std::map<std::string, Epochs> epochs_;  // by dataset
  std::optional<TimePoint> answered_at_;
  bool silent_ = false;
  bool over_ = false;
};

}  // namespace muster::scaler
