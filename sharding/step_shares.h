#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster {

/// Minibatches [first, first + count) of a shard.
struct ShareRange {
  uint32_t first = 0;
  uint32_t count = 0;
  friend bool operator==(const ShareRange&, const ShareRange&) = default;
};
/// The share of one member in a step: ranges that do not touch, ascending. Empty: nothing.
using ShareRanges = std::vector<ShareRange>;

uint64_t CountOf(const ShareRanges& ranges);

/// How many parts of the work each member should get, from the time that a minibatch takes it in
/// microseconds (0: not known, so it counts as average). All are equal while the slowest member
/// takes at most a quarter more time than the fastest: measurements vary, and shares that change
/// make readers seek. No part is 0, and none is more than eight times another.
std::vector<uint64_t> Quotas(std::span<const uint64_t> minibatch_us);

/// Divides minibatches [0, minibatches) in proportion to the quotas, which are less than 2^31: each
/// member gets at most one range, in the order of the members, and each minibatch is in one share.
/// With equal quotas, the shares differ by one minibatch at most.
std::vector<ShareRanges> FreshShares(uint32_t minibatches, std::span<const uint64_t> quotas);

/// Adds the minibatches of `gone` to the shares of the members that stay, in proportion to the
/// quotas. Nobody loses a minibatch, because it may have computed it.
std::vector<ShareRanges> SharesAfterLoss(std::vector<ShareRanges> kept, const ShareRanges& gone,
                                         std::span<const uint64_t> quotas);

}  // namespace muster
