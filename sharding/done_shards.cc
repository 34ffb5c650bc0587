#include "sharding/done_shards.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster {

ShardId DoneShards::PageOf(const ShardId& shard) {
  const uint64_t index = shard.index.value();
  return {shard.dataset, shard.epoch, ShardIndex(index - index % kPageShards)};
}

DoneSeq DoneShards::SeqOf(const ShardId& shard) const {
  const auto page = pages_.find(PageOf(shard));
  const uint64_t place = shard.index.value() % kPageShards;
  const bool known = page != pages_.end() && place < page->second.seqs.size();
  return known ? page->second.seqs[place] : DoneSeq();
}

DoneShards::const_iterator DoneShards::AtOrAfter(DoneSeq seq) const {
  return std::ranges::lower_bound(by_seq_, seq, {}, &DoneShard::seq);
}

bool DoneShards::Contains(DoneSeq seq) const {
  const auto at = AtOrAfter(seq);
  return at != by_seq_.end() && at->seq == seq;
}

const DoneShard* DoneShards::Find(const ShardId& shard) const {
  const DoneSeq seq = SeqOf(shard);
  if (seq == DoneSeq()) return nullptr;
  const auto at = AtOrAfter(seq);
  MUSTER_CHECK_MSG(at != by_seq_.end() && at->shard == shard, ToString(shard));
  return &*at;
}

size_t DoneShards::places() const {
  size_t places = 0;
  for (const auto& [first, page] : pages_) places += page.seqs.size();
  return places;
}

void DoneShards::Add(const DoneShard& done) {
  MUSTER_CHECK(done.seq > (empty() ? DoneSeq() : last().seq));
  Page& page = pages_[PageOf(done.shard)];
  const uint64_t place = done.shard.index.value() % kPageShards;
  if (place >= page.seqs.size()) page.seqs.resize(place + 1);
  MUSTER_CHECK_MSG(page.seqs[place] == DoneSeq(), ToString(done.shard));
  page.seqs[place] = done.seq;
  ++page.count;
  by_seq_.push_back(done);
}

void DoneShards::Forget(const ShardId& shard) {
  const auto page = pages_.find(PageOf(shard));
  MUSTER_CHECK_MSG(page != pages_.end(), ToString(shard));
  DoneSeq& seq = page->second.seqs[shard.index.value() % kPageShards];
  MUSTER_CHECK_MSG(std::exchange(seq, DoneSeq()) != DoneSeq(), ToString(shard));
  if (--page->second.count == 0) pages_.erase(page);
}

DoneShard DoneShards::TakeFirst() {
  MUSTER_CHECK(!empty());
  const DoneShard done = by_seq_.front();
  by_seq_.pop_front();
  Forget(done.shard);
  return done;
}

DoneShard DoneShards::TakeLast() {
  MUSTER_CHECK(!empty());
  const DoneShard done = by_seq_.back();
  by_seq_.pop_back();
  Forget(done.shard);
  return done;
}

}  // namespace muster
