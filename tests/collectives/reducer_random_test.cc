#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "collectives/reducer.h"
#include "tests/collectives/group_fixture.h"

namespace muster::collectives {
namespace {

using testing::Answer;
using testing::Bucket;
using testing::Group;

constexpr std::array<size_t, 5> kElements = {0, 1, 700, 9'000, 90'000};
constexpr uint64_t kAttempts = 4;
/// Never left before all sums are there.
constexpr uint64_t kWholeAttempt = kAttempts;

/// Whole buckets of an attempt at all members, by bucket and rank. Each element of member r's
/// bucket b is 10 b + r.
class Step {
 public:
  Step(uint32_t members, Rng* rng) {
    const auto count = static_cast<uint32_t>(1 + rng->Below(6));
    for (uint32_t number = 0; number < count; ++number) {
      const size_t elements = kElements[rng->Below(kElements.size())];
      auto& bucket = buckets_.emplace_back();
      for (uint32_t rank = 0; rank < members; ++rank) {
        bucket.push_back(std::make_unique<Bucket<int64_t>>(elements));
        std::ranges::fill(bucket[rank]->in, 10 * number + rank);
      }
    }
  }
  uint32_t size() const { return static_cast<uint32_t>(buckets_.size()); }
  Bucket<int64_t>& at(uint32_t number, uint32_t rank) { return *buckets_[number][rank]; }
  /// Whether all of the member's sums are right.
  void ExpectSum(uint32_t number, uint32_t rank, uint32_t members) {
    const int64_t sum = int64_t{10} * number * members + members * (members - 1) / 2;
    const auto& out = at(number, rank).out;
    EXPECT_EQ(std::ranges::count(out, sum), static_cast<int64_t>(out.size()));
  }

 private:
  std::vector<std::vector<std::unique_ptr<Bucket<int64_t>>>> buckets_;
};

/// One attempt: every member gives its buckets in an order of its own, and some of them leave it
/// wherever they are. What was given is answered, and its memory is not touched after that.
void RunAttempt(Group* group, uint64_t attempt, Rng* rng) {
  const uint32_t members = group->size();
  const bool whole = attempt == kWholeAttempt;
  auto step = std::make_unique<Step>(members, rng);
  std::vector<std::vector<uint32_t>> left(members);
  for (std::vector<uint32_t>& numbers : left) {
    for (uint32_t number = 0; number < step->size(); ++number) numbers.push_back(number);
    for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[rng->Below(i)]);
  }
  std::vector<std::pair<uint32_t, uint32_t>> given;
  std::vector<bool> started(members, false), gone(members, false);
  size_t events = members * (step->size() + 1);
  if (!whole) events = rng->Below(events + 1);
  while (events > 0) {
    const auto rank = static_cast<uint32_t>(rng->Below(members));
    if (gone[rank] || (started[rank] && left[rank].empty())) {
      if (!whole) --events;
      continue;
    }
    --events;
    if (!started[rank]) {
      group->Start(rank, attempt);
      started[rank] = true;
      continue;
    }
    const uint32_t number = left[rank].back();
    left[rank].pop_back();
    given.emplace_back(number, rank);
    step->at(number, rank).Sum(&group->reducer(rank), GroupDtype::kFixedPoint, attempt, number);
    if (whole || rng->Below(8) > 0) continue;
    gone[rank] = true;
    rng->Below(2) == 0 ? group->reducer(rank).Abort() : group->Stop(rank);
  }
  if (!whole) {
    for (uint32_t rank = 0; rank < members; ++rank) group->Stop(rank);
  }
  for (const auto& [number, rank] : given) {
    const Answer answer = step->at(number, rank).answers.Await(1)[0];
    if (answer.status.ok()) {
      step->ExpectSum(number, rank, members);
    } else {
      EXPECT_TRUE(!whole && absl::IsAborted(answer.status)) << answer.status;
    }
  }
  for (uint32_t rank = 0; rank < members; ++rank) group->Stop(rank);
}

TEST(ReducerRandomTest, BucketsThatAreAbortedAnywhereLeaveNoTrace) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const size_t ring_bytes = rng.Below(2) == 0 ? 0 : size_t{64} << 20;
    Group group(static_cast<uint32_t>(2 + rng.Below(4)),
                [&](uint32_t, ListenerOptions* options) { options->ring_bytes_max = ring_bytes; });
    for (uint64_t attempt = 1; attempt <= kAttempts; ++attempt) RunAttempt(&group, attempt, &rng);
  }
}

}  // namespace
}  // namespace muster::collectives
