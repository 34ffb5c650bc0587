#include "master/group_core/stalls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster {

Stalls::Picture Stalls::Look() const {
  Picture picture;
  if (!work_->any()) return picture;
  bool adds = false;
  for (const GroupProcess& member : books_->members) {
    const GroupExchangeRequest& report = books_->ReportOf(member);
    const bool here = report.attempt == books_->lineage.attempt();
    if (!here || (report.phase != MemberPhase::kReducing && report.phase != MemberPhase::kVoted)) {
      return {};
    }
    adds = adds || report.phase == MemberPhase::kReducing;
    picture.emplace_back(report.attempt, report.phase, report.moved);
  }
  return adds ? picture : Picture();
}

std::chrono::milliseconds Stalls::Limit() const {
  return kSilences * books_->options.silence_limit * (1 << std::min(in_a_row_, kDoublingsMax));
}

std::optional<std::string> Stalls::Judge(TimePoint now) {
  Picture picture = Look();
  if (picture.empty() || picture != seen_) {
    seen_ = std::move(picture);
    since_ = now;
    return std::nullopt;
  }
  if (now - since_ < Limit()) return std::nullopt;
  std::string why = fmt::format("the sums of step {} stand still for {} s",
                                books_->lineage.step().Next().value(), Limit().count() / 1000);
  ++in_a_row_;
  since_ = now;
  return why;
}

}  // namespace muster
