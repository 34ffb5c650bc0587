#include "master/group_core/suspicions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace muster {

void Suspicions::Accuse(const GroupProcess& accuser, const SuspectedMember& suspected) {
  const GroupProcess accused{suspected.worker, suspected.incarnation};
  if (accused == accuser || !books_->IsMember(accused)) return;
  accused_[accused].emplace(accuser, Excerpt(suspected.text, 200));
}

void Suspicions::Take(TimePoint now) {
  for (const GroupProcess& member : books_->members) {
    const GroupExchangeRequest& report = books_->ReportOf(member);
    // It speaks of an attempt before this one.
    if (report.attempt != books_->lineage.attempt()) continue;
    for (const SuspectedMember& suspected : report.suspected) Accuse(member, suspected);
  }
  if (!accused_.empty() && !began_.has_value()) began_ = now;
}

GroupProcess Suspicions::WorseOf(const Pair& pair) const {
  const auto process = [this](const std::string& worker) {
    return *std::ranges::find(books_->members, worker, &GroupProcess::worker);
  };
  const auto accusers = [this](const GroupProcess& one) {
    const auto found = accused_.find(one);
    return found == accused_.end() ? 0 : found->second.size();
  };
  const GroupProcess a = process(pair.first), b = process(pair.second);
  if (accusers(a) != accusers(b)) return accusers(a) > accusers(b) ? a : b;
  return books_->RankOf(a) > books_->RankOf(b) ? a : b;
}

std::optional<Suspicions::Verdict> Suspicions::Judge(TimePoint now) {
  if (!began_.has_value()) return std::nullopt;
  std::vector<GroupProcess> unheard;
  for (const GroupProcess& member : books_->members) {
    if (books_->processes.Find(member)->heard <= *began_) unheard.push_back(member);
  }
  if (!unheard.empty() && now - *began_ < books_->options.inquiry_wait) return std::nullopt;
  Verdict verdict;
  std::set<Pair> pairs;
  for (const auto& [accused, by] : accused_) {
    for (const auto& [accuser, text] : by) {
      pairs.insert(std::minmax(accused.worker, accuser.worker));
      verdict.why = fmt::format("{} cannot reach {}: {}", accuser.worker, accused.worker, text);
    }
  }
  for (const GroupProcess& member : unheard) {
    verdict.out.emplace_back(member, fmt::format("it did not answer after {}", verdict.why));
  }
  for (const Pair& pair : pairs) {
    const auto lost = evictions_.find(pair);
    const uint32_t times = lost == evictions_.end() ? 0 : lost->second;
    const uint32_t allowed = times > 0 ? 1 : kStrikesMax;
    if (++strikes_[pair] < allowed || verdict.evicted.has_value()) continue;
    verdict.evicted = WorseOf(pair);
    verdict.away = books_->options.eviction * (1 << std::min(times, kDoublingsMax));
    verdict.out.emplace_back(*verdict.evicted, times > 0 ? fmt::format("again {}", verdict.why)
                                                         : fmt::format("{} times in a row {}",
                                                                       kStrikesMax, verdict.why));
    strikes_.erase(pair);
    ++evictions_[pair];
  }
  return verdict;
}

void Suspicions::OnAttempt() {
  began_.reset();
  accused_.clear();
}

void Suspicions::OnStep() {
  OnAttempt();
  strikes_.clear();
  const auto member = [this](const std::string& worker) {
    return std::ranges::find(books_->members, worker, &GroupProcess::worker) !=
           books_->members.end();
  };
  std::erase_if(evictions_, [&](const auto& lost) {
    return member(lost.first.first) && member(lost.first.second);
  });
}

}  // namespace muster
