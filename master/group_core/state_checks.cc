#include "master/group_core/state_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace muster {

bool StateChecks::IsDue(StepNumber step) {
  const uint64_t number = step.value();
  if (number == 0) return false;  // the master has compared the initial states
  return number % kEvery == 0 || (number < kEvery && std::has_single_bit(number));
}

std::optional<StateLabel> StateChecks::Newest() const {
  std::optional<StateLabel> newest;
  for (const GroupProcess& member : books_->members) {
    const std::optional<StateDigest>& digest = books_->ReportOf(member).digest;
    if (!digest.has_value() || digest->label.lineage != books_->lineage.number()) continue;
    if (!newest.has_value() || digest->label.step > newest->step) newest = digest->label;
  }
  return newest;
}

std::optional<StateChecks::Verdict> StateChecks::Judge() const {
  const std::optional<StateLabel> label = Newest();
  if (!label.has_value()) return std::nullopt;
  std::vector<std::pair<GroupProcess, uint64_t>> told;
  std::string text;
  for (const GroupProcess& member : books_->members) {
    const std::optional<StateDigest>& digest = books_->ReportOf(member).digest;
    if (!digest.has_value() || digest->label != *label) continue;
    told.emplace_back(member, digest->value);
    text += fmt::format("{}{} has {:016x}", text.empty() ? "" : ", ", member.worker, digest->value);
  }
  // Rule 12.24.
  const auto is_of_most = [&](const auto& one) {
    const auto same = std::ranges::count(told, one.second, [](const auto& o) { return o.second; });
    return 2 * static_cast<size_t>(same) > books_->members.size();
  };
  const auto most = std::ranges::find_if(told, is_of_most);
  Verdict verdict;
  verdict.why = fmt::format("the states after step {} differ: {}", label->step.value(), text);
  if (most == told.end()) {
    const bool differ = std::ranges::any_of(
        told, [&](const auto& one) { return one.second != told.front().second; });
    if (told.size() < books_->members.size() || !differ) return std::nullopt;
    return verdict;
  }
  for (const auto& [member, digest] : told) {
    if (digest == most->second) continue;
    verdict.out.emplace_back(
        member, fmt::format("its state after step {} is not that of most members ({:016x}, not "
                            "{:016x})",
                            label->step.value(), digest, most->second));
  }
  if (verdict.out.empty()) return std::nullopt;
  return verdict;
}

}  // namespace muster
