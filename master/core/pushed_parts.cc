#include "master/core/pushed_parts.h"

namespace muster {

std::optional<DoneSeq> PushedParts::SeqOf(DoneSeq done) const {
  const auto pushed = pushed_.find(done);
  return pushed == pushed_.end() ? done : pushed->second;
}

std::optional<DoneSeq> PushedParts::FirstLacking() const {
  for (const auto& [done, as_of] : pushed_) {
    if (!as_of.has_value()) return done;
  }
  return std::nullopt;
}

std::vector<DoneShard> PushedParts::PushedAfter(DoneSeq cut, const DoneShards& done) const {
  std::vector<DoneShard> after;
  for (const DoneShard& shard : done) {
    const std::optional<DoneSeq> as_of = SeqOf(shard.seq);
    if (as_of.has_value() && *as_of > cut) after.push_back(shard);
  }
  return after;
}

DoneSeq PushedParts::HeldUpTo(DoneSeq cut) const {
  for (const auto& [done, as_of] : pushed_) {
    if (done > cut) break;
    if (!as_of.has_value() || *as_of > cut) return DoneSeq(done.value() - 1);
  }
  return cut;
}

}  // namespace muster
