#include "collectives/reducer.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <tuple>

#include "base/checksum/crc32c.h"
#include "base/random.h"
#include "tests/collectives/group_fixture.h"
#include "tests/net/tls_fixture.h"

namespace muster::collectives {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::testing::AllOf;
using testing::Answer;
using testing::Bucket;
using testing::Group;
using ::testing::HasSubstr;

constexpr uint64_t kSizes[] = {0, 1, 7, 1000, (1u << 18) + 3};

template <typename T>
using Buckets = std::vector<std::unique_ptr<Bucket<T>>>;

/// A bucket of each member, with numbers whose sum depends on the order of the additions.
Buckets<float> Floats(uint32_t members, uint64_t elements) {
  Rng rng(elements);
  Buckets<float> buckets;
  for (uint32_t rank = 0; rank < members; ++rank) {
    buckets.push_back(std::make_unique<Bucket<float>>(elements));
    for (float& value : buckets.back()->in) {
      value = static_cast<float>(rng.Uniform()) * static_cast<float>(1 + rng.Below(1000));
    }
  }
  return buckets;
}

/// All have the sum, with the same bits.
void ExpectSums(const Buckets<float>& buckets) {
  for (const auto& bucket : buckets) {
    const Answer answer = bucket->answers.Await(1)[0];
    ASSERT_THAT(answer.status, IsOk());
    ASSERT_TRUE(bucket->out == buckets[0]->out);
    EXPECT_EQ(answer.crc, Crc32c(std::as_bytes(std::span(bucket->out))));
  }
  for (size_t i = 0; i < buckets[0]->in.size(); ++i) {
    double sum = 0;
    for (const auto& bucket : buckets) sum += bucket->in[i];
    // ASSERT_NEAR would take most of the time.
    ASSERT_TRUE(std::abs(buckets[0]->out[i] - sum) <= 1e-5 * sum + 1e-9) << i;
  }
}

/// Members, through UNIX sockets or shared memory.
class ReducerSizesTest : public ::testing::TestWithParam<std::tuple<uint32_t, size_t>> {
 protected:
  const uint32_t members_ = std::get<0>(GetParam());
  Group group_{members_, [](uint32_t, ListenerOptions* options) {
                 options->ring_bytes_max = std::get<1>(GetParam());
               }};
};
INSTANTIATE_TEST_SUITE_P(Members, ReducerSizesTest,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5, 8),
                                            ::testing::Values(size_t{0}, size_t{64} << 20)));

TEST_P(ReducerSizesTest, BucketsOfAllSizesAreSummedAtOnce) {
  group_.StartAll(1);
  std::vector<Buckets<float>> all;
  for (const uint64_t elements : kSizes) all.push_back(Floats(members_, elements));
  for (uint32_t rank = 0; rank < members_; ++rank) {
    // Each member gives its buckets in another order.
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t number = (i + rank) % all.size();
      all[number][rank]->Sum(&group_.reducer(rank), GroupDtype::kFloat32, 1,
                             static_cast<uint32_t>(number));
    }
  }
  for (const Buckets<float>& buckets : all) ExpectSums(buckets);
}

TEST_P(ReducerSizesTest, WholeNumbersAndBfloat16) {
  group_.StartAll(1);
  for (const uint64_t elements : {9u, 100'001u}) {
    Buckets<int64_t> whole;
    Buckets<uint16_t> halves;
    for (uint32_t rank = 0; rank < members_; ++rank) {
      whole.push_back(std::make_unique<Bucket<int64_t>>(elements));
      halves.push_back(std::make_unique<Bucket<uint16_t>>(elements));
      for (uint64_t i = 0; i < elements; ++i) {
        whole[rank]->in[i] = static_cast<int64_t>(i * i) * (rank % 2 == 0 ? 1 : -2);
        halves[rank]->in[i] = 0x3f80;  // 1
      }
      whole[rank]->Sum(&group_.reducer(rank), GroupDtype::kFixedPoint, elements, 0);
      halves[rank]->Sum(&group_.reducer(rank), GroupDtype::kBfloat16, elements, 1);
    }
    const int64_t times = (members_ + 1) / 2 - 2 * static_cast<int64_t>(members_ / 2);
    const float count = static_cast<float>(members_);
    for (uint32_t rank = 0; rank < members_; ++rank) {
      ASSERT_THAT(whole[rank]->answers.Await(1)[0].status, IsOk());
      ASSERT_THAT(halves[rank]->answers.Await(1)[0].status, IsOk());
      for (uint64_t i = 0; i < elements; ++i) {
        ASSERT_EQ(whole[rank]->out[i], static_cast<int64_t>(i * i) * times);
        ASSERT_EQ(halves[rank]->out[i], std::bit_cast<uint32_t>(count) >> 16);
      }
    }
  }
}

TEST_P(ReducerSizesTest, ManyStepsFollowEachOther) {
  group_.StartAll(1);
  for (uint64_t step = 1; step <= 50; ++step) {
    Buckets<float> small = Floats(members_, 16), large = Floats(members_, 20'000);
    for (uint32_t rank = 0; rank < members_; ++rank) {
      small[rank]->Sum(&group_.reducer(rank), GroupDtype::kFloat32, step, 0);
      large[rank]->Sum(&group_.reducer(rank), GroupDtype::kFloat32, step, 1);
    }
    ExpectSums(small);
    ExpectSums(large);
  }
}

TEST(ReducerTest, TheInputStaysAsItIs) {
  Group group(3);
  group.StartAll(1);
  const Buckets<float> buckets = Floats(3, 100'000), copy = Floats(3, 100'000);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    buckets[rank]->Sum(&group.reducer(rank), GroupDtype::kFloat32, 1, 0);
  }
  ExpectSums(buckets);
  for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(buckets[rank]->in == copy[rank]->in);
}

TEST(ReducerTest, OverTls) {
  const net::tls_test::Certificates certificates;
  const SystemClock clock;
  Group group(3, [&](uint32_t, ListenerOptions* options) {
    options->unix_path = "";
    options->host = "127.0.0.1";
    options->tls_server = net::SourceOf(
        TlsContext::Make(ServerTls{certificates.Files(Role::kWorker), "id-1", {Role::kWorker}},
                         &clock)
            .value());
    options->tls_client = net::SourceOf(certificates.ClientContext(Role::kWorker, Role::kWorker));
  });
  group.StartAll(1);
  for (const uint64_t elements : {10u, 300'000u}) {
    const Buckets<float> buckets = Floats(3, elements);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      buckets[rank]->Sum(&group.reducer(rank), GroupDtype::kFloat32, elements, 0);
    }
    ExpectSums(buckets);
  }
}

TEST(ReducerTest, OverPlainTcp) {
  Group group(3, [&](uint32_t, ListenerOptions* options) {
    options->unix_path = "";
    options->host = "127.0.0.1";
  });
  group.StartAll(1);
  for (const uint64_t elements : {10u, 300'000u}) {
    const Buckets<float> buckets = Floats(3, elements);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      buckets[rank]->Sum(&group.reducer(rank), GroupDtype::kFloat32, elements, 0);
    }
    ExpectSums(buckets);
  }
}

TEST(ReducerTest, ASumWaitsForAMemberThatBeginsLater) {
  Group group(2);
  const Buckets<float> buckets = Floats(2, 100'000);
  buckets[0]->Sum(group.Start(0, 1), GroupDtype::kFloat32, 1, 0);
  EXPECT_EQ(buckets[0]->answers.size(), 0u);
  buckets[1]->Sum(group.Start(1, 1), GroupDtype::kFloat32, 1, 0);
  ExpectSums(buckets);
}

TEST(ReducerTest, AbortAnswersWhatIsPendingAndTheNextAttemptWorks) {
  Group group(3);
  group.StartAll(1);
  const Buckets<float> buckets = Floats(3, (1u << 18) + 3);
  // Rank 2 gives nothing, so nobody gets a sum.
  for (uint32_t rank = 0; rank < 2; ++rank) {
    buckets[rank]->Sum(&group.reducer(rank), GroupDtype::kFloat32, 1, 0);
  }
  for (uint32_t rank = 0; rank < 2; ++rank) {
    group.reducer(rank).Abort();
    EXPECT_THAT(buckets[rank]->answers.Await(1)[0].status,
                StatusIs(absl::StatusCode::kAborted, ::testing::_));
  }
  buckets[2]->Sum(&group.reducer(2), GroupDtype::kFloat32, 1, 0);
  group.reducer(2).Abort();
  EXPECT_THAT(buckets[2]->answers.Await(1)[0].status,
              StatusIs(absl::StatusCode::kAborted, ::testing::_));
  const Buckets<float> again = Floats(3, (1u << 18) + 3);
  group.StartAll(2);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    again[rank]->Sum(&group.reducer(rank), GroupDtype::kFloat32, 1, 0);
  }
  ExpectSums(again);
}

TEST(ReducerTest, AnEndInTheMiddleAnswersAndTouchesNothingMore) {
  Group group(3);
  for (uint64_t attempt = 1; attempt <= 12; ++attempt) {
    group.StartAll(attempt);
    Buckets<float> small = Floats(3, 10), large = Floats(3, 1u << 18);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      small[rank]->Sum(&group.reducer(rank), GroupDtype::kFloat32, 1, 0);
      large[rank]->Sum(&group.reducer(rank), GroupDtype::kFloat32, 1, 1);
    }
    // Then the large sum has begun, at least.
    if (attempt % 2 == 0) small[attempt % 3]->answers.Await(1);
    for (uint32_t rank = 0; rank < 3; ++rank) group.Stop((rank + attempt) % 3);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(large[rank]->answers.size(), 1u);
      const absl::Status status = large[rank]->answers.Await(1)[0].status;
      EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << Message(status);
    }
  }
}

TEST(ReducerTest, WrongArgumentsAreRefused) {
  Group group(2);
  Reducer* const reducer = group.Start(0, 1);
  Bucket<float> bucket(4);
  bucket.Sum(reducer, GroupDtype::kFloat64, 1, 0);
  bucket.Sum(reducer, GroupDtype::kFloat32, 1, most::kGroupTensors);
  const auto refused = [&](std::span<const std::byte> in, std::span<std::byte> out) {
    reducer->Sum(StepNumber(1), 0, GroupDtype::kFloat32, in, out,
                 [&](absl::Status status, uint32_t crc) { bucket.answers.Put({status, crc}); });
  };
  const auto in = std::as_bytes(std::span(bucket.in));
  const auto out = std::as_writable_bytes(std::span(bucket.out));
  refused(in.first(8), out);
  refused(in.first(7), out.first(7));
  refused(in.subspan(1, 8), out.first(8));
  refused(out.first(8), out.subspan(4, 8));
  bucket.Sum(reducer, GroupDtype::kFloat32, 1, 0);
  bucket.Sum(reducer, GroupDtype::kFloat32, 1, 0);  // again, while it is pending
  for (const Answer& answer : bucket.answers.Await(7)) {
    EXPECT_THAT(answer.status, StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  }
  group.Stop(0);
  EXPECT_THAT(bucket.answers.Await(8)[7].status,
              StatusIs(absl::StatusCode::kAborted, ::testing::_));
}

TEST(ReducerTest, AMemberThatCannotBeReachedIsSuspected) {
  Group group(2);
  group.members()[1].addresses = {"unix:/nowhere/m1"};
  const auto soon = [](ReducerOptions* options) {
    options->connect_timeout = std::chrono::milliseconds(30);
  };
  group.Start(0, 1, soon);
  group.Start(1, 1, soon);
  const SuspectedMember unreachable = group.suspects(0).Await(1)[0];
  EXPECT_EQ(unreachable.worker, "worker-1");
  EXPECT_EQ(unreachable.incarnation, 101u);
  EXPECT_THAT(unreachable.text, HasSubstr("unix:/nowhere/m1: there is no such path"));
  const SuspectedMember silent = group.suspects(1).Await(1)[0];
  EXPECT_EQ(silent.worker, "worker-0");
  EXPECT_THAT(silent.text, HasSubstr("has not connected within 30 ms"));
}

TEST(ReducerTest, MembersOfAnotherAttemptAreRefused) {
  Group group(2);
  group.Start(1, 7);
  group.Start(0, 6);
  EXPECT_THAT(
      group.suspects(0).Await(1)[0].text,
      AllOf(HasSubstr("unix:"), HasSubstr("worker-1 has left attempt 6; its newest one is 7")));
}

TEST(ReducerTest, MembersOfAnotherLineageAreRefused) {
  Group group(2);
  group.Start(1, 1, [](ReducerOptions* options) { options->lineage = LineageNumber(2); });
  group.Start(0, 1);
  EXPECT_THAT(group.suspects(0).Await(1)[0].text, HasSubstr("worker-1 works on lineage 2, not 1"));
}

TEST(ReducerTest, AMemberOfAnotherRankIsRefused) {
  Group group(3);
  group.Start(0, 1,
              [](ReducerOptions* options) { std::swap(options->members[1], options->members[2]); });
  group.Start(1, 1);
  EXPECT_THAT(group.suspects(0).Await(1)[0].text,
              HasSubstr("worker-1 is rank 1 of 3 members, not rank 2 of 3"));
}

TEST(ReducerTest, AnotherProcessOfTheNameIsRefused) {
  Group group(2);
  group.members()[1].incarnation = 99;
  group.Start(0, 1);
  EXPECT_THAT(group.suspects(0).Await(1)[0].text,
              HasSubstr("this is worker-1 of incarnation 101, not worker-1 of incarnation 99"));
}

TEST(ReducerTest, AProcessOfAnotherJobIsRefused) {
  Group group(2, [](uint32_t rank, ListenerOptions* options) {
    if (rank == 1) options->job_id = "id-2";
  });
  group.Start(1, 1);
  // The right process may come yet, so it is tried again until the time is over.
  group.Start(0, 1, [](ReducerOptions* options) {
    options->connect_timeout = std::chrono::milliseconds(100);
  });
  EXPECT_THAT(group.suspects(0).Await(1)[0].text, AllOf(HasSubstr("id-1"), HasSubstr("id-2")));
}

}  // namespace
}  // namespace muster::collectives
