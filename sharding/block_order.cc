#include "sharding/block_order.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/random.h"

namespace muster {

BlockOrder::Spread::Spread(uint64_t of) : size(of) {
  step = std::max<uint64_t>(size * 618 / 1000, 1);
  while (std::gcd(step, size) != 1) ++step;
  while (step * inverse % size != 1 % size) ++inverse;
}

BlockOrder::BlockOrder(uint64_t key, uint64_t blocks, uint32_t strata)
    : blocks_(blocks),
      strata_(std::min<uint64_t>(strata, blocks)),
      full_rows_(blocks / std::max<uint64_t>(strata_, 1)),
      long_(blocks - full_rows_ * strata_),
      spread_(strata_),
      last_spread_(std::max<uint64_t>(long_, 1)) {
  MUSTER_CHECK(blocks > 0 && strata > 0);
  rows_.reserve(strata_);
  for (uint64_t i = 0; i < strata_; ++i) {
    rows_.emplace_back(HashWords(key, i), BeginOf(i + 1) - BeginOf(i));
  }
}

uint64_t BlockOrder::LongBefore(uint64_t stratum) const {
  return stratum * long_ / strata_;
}

uint64_t BlockOrder::BeginOf(uint64_t stratum) const {
  return stratum * full_rows_ + LongBefore(stratum);
}

uint64_t BlockOrder::BlockAt(uint64_t position) const {
  MUSTER_CHECK(position < blocks_);
  const uint64_t row = position / strata_;
  const uint64_t place = position % strata_;
  uint64_t stratum = 0;
  if (row < full_rows_) {
    stratum = spread_.At(place);
  } else {
    // The long stratum before which there are `number` others.
    const uint64_t number = last_spread_.At(place);
    stratum = ((number + 1) * strata_ + long_ - 1) / long_ - 1;
  }
  return BeginOf(stratum) + rows_[stratum].At(row);
}

uint64_t BlockOrder::PositionOf(uint64_t block) const {
  MUSTER_CHECK(block < blocks_);
  uint64_t stratum = 0;
  for (uint64_t end = strata_; end - stratum > 1;) {
    const uint64_t middle = (stratum + end) / 2;
    (BeginOf(middle) <= block ? stratum : end) = middle;
  }
  const uint64_t row = rows_[stratum].IndexOf(block - BeginOf(stratum));
  return row * strata_ +
         (row < full_rows_ ? spread_.IndexOf(stratum) : last_spread_.IndexOf(LongBefore(stratum)));
}

}  // namespace muster
