#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "master/group_core/group_records.h"
#include "proto/messages/group_control.h"

namespace muster {

/// A process as this master knows it.
struct Process {
  uint64_t incarnation = 0;
  TimePoint heard;
  /// Its newest call, without the introduction. It tells the whole state of the process.
  GroupExchangeRequest report;
  /// None: it must introduce itself.
  std::optional<GroupIntroduction> introduction;
  /// The operator, or the job, wants it to leave.
  bool drains = false;
  /// Why it can never take part; empty: it can.
  std::string refused;
  std::optional<TimePoint> evicted_until;
  /// It became a member although it lacked steps that the others can tell it; since it has got on
  /// last.
  std::optional<TimePoint> catches_up;
  /// Its state is not that of the other members. It must drop it, and until it has none, it is
  /// treated as if it had none.
  bool differs = false;
  /// What it was told, and the number of that news.
  GroupStanding standing = GroupStanding::kUnknown;
  std::string waits;
  uint64_t news = 0;

  bool leaves() const { return drains || report.leaving || report.gone; }
  /// It could be a member, as far as only the process itself is asked.
  bool usable() const {
    return introduction.has_value() && refused.empty() && !evicted_until.has_value() && !differs;
  }
};

/// The processes that call: which of them speaks for its worker, what it said last, and whether it
/// lives. Pure; not thread-safe.
class Processes {
 public:
  /// Takes a call. kFailedPrecondition if the process is dead, or another one has its name;
  /// kAlreadyExists if it has sent a newer call, so that this one says nothing.
  absl::Status Hear(const GroupExchangeRequest& request, TimePoint now);
  /// The process is dead, whether it is known or not.
  void Bury(const std::string& worker, uint64_t incarnation);
  /// Forgets the processes that were silent for the limit, and returns them. They may call again.
  std::vector<GroupProcess> TakeSilent(std::chrono::milliseconds limit, TimePoint now);
  /// Lets processes in again whose eviction is over.
  void EndEvictions(TimePoint now);
  void Forgive(std::chrono::nanoseconds gap, TimePoint now);

  /// nullptr: the worker has no process, or another one.
  Process* Find(const GroupProcess& process);
  const Process* Find(const GroupProcess& process) const;
  bool IsDead(const GroupProcess& process) const;
  /// By the name of the worker.
  std::map<std::string, Process>& all() { return processes_; }
  const std::map<std::string, Process>& all() const { return processes_; }

 private:
  /// The newest dead processes of each worker.
  static constexpr size_t kDeadMax = 16;

  std::map<std::string, Process> processes_;
  std::map<std::string, std::deque<uint64_t>> dead_;
};

}  // namespace muster
