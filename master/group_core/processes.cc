#include "master/group_core/processes.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

absl::Status Processes::Hear(const GroupExchangeRequest& request, TimePoint now) {
  if (request.worker.empty() || request.incarnation == 0) {
    return absl::InvalidArgumentError("a member of a group needs a name and an incarnation");
  }
  if (IsDead({request.worker, request.incarnation})) {
    return absl::FailedPreconditionError(
        fmt::format("worker '{}': another process now has this name, or this one counts as dead, "
                    "so it must exit",
                    request.worker));
  }
  const auto known = processes_.find(request.worker);
  if (known != processes_.end() && known->second.incarnation != request.incarnation) {
    Bury(request.worker, known->second.incarnation);
  }
  const auto [it, added] = processes_.try_emplace(request.worker);
  Process& process = it->second;
  process.incarnation = request.incarnation;
  process.heard = now;
  if (!added && request.sequence <= process.report.sequence) {
    return absl::AlreadyExistsError("a newer call of the process was heard");
  }
  const GroupExchangeRequest& before = process.report;
  const bool gets_on = request.moved != before.moved || request.state != before.state ||
                       request.phase == MemberPhase::kApplying;
  if (gets_on && process.catches_up.has_value()) process.catches_up = now;
  process.report = request;
  process.report.introduction.reset();
  if (!request.state.has_value()) process.differs = false;
  if (request.introduction.has_value()) process.introduction = request.introduction;
  if (request.gone) {
    process.introduction.reset();
    process.refused.clear();
  }
  return absl::OkStatus();
}

void Processes::Bury(const std::string& worker, uint64_t incarnation) {
  const auto known = processes_.find(worker);
  if (known != processes_.end() && known->second.incarnation == incarnation) {
    processes_.erase(known);
  }
  std::deque<uint64_t>& dead = dead_[worker];
  if (std::ranges::find(dead, incarnation) != dead.end()) return;
  dead.push_back(incarnation);
  if (dead.size() > kDeadMax) dead.pop_front();
}

std::vector<GroupProcess> Processes::TakeSilent(std::chrono::milliseconds limit, TimePoint now) {
  std::vector<GroupProcess> silent;
  for (auto it = processes_.begin(); it != processes_.end();) {
    if (now - it->second.heard < limit) {
      ++it;
      continue;
    }
    silent.push_back({it->first, it->second.incarnation});
    it = processes_.erase(it);
  }
  return silent;
}

void Processes::EndEvictions(TimePoint now) {
  for (auto& [worker, process] : processes_) {
    if (process.evicted_until.has_value() && now >= *process.evicted_until) {
      process.evicted_until.reset();
    }
  }
}

void Processes::Forgive(std::chrono::nanoseconds gap, TimePoint now) {
  for (auto& [worker, process] : processes_) {
    process.heard = std::min(process.heard + gap, now);
    if (process.catches_up.has_value()) {
      process.catches_up = std::min(*process.catches_up + gap, now);
    }
  }
}

Process* Processes::Find(const GroupProcess& process) {
  const auto it = processes_.find(process.worker);
  const bool same = it != processes_.end() && it->second.incarnation == process.incarnation;
  return same ? &it->second : nullptr;
}

const Process* Processes::Find(const GroupProcess& process) const {
  return const_cast<Processes*>(this)->Find(process);
}

bool Processes::IsDead(const GroupProcess& process) const {
  const auto dead = dead_.find(process.worker);
  return dead != dead_.end() &&
         std::ranges::find(dead->second, process.incarnation) != dead->second.end();
}

}  // namespace muster
