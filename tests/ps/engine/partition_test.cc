#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/random.h"
#include "tests/ps/engine/partition_fixture.h"

namespace muster::ps {
namespace partition_test {

TEST_F(PartitionTest, AMinibatchTakesEffectOnceWhateverItsToken) {
  EXPECT_EQ(Push(1, 0, Token(1), {5, 6}, {1, 2, 3, 4}).code, ApplyCode::kApplied);
  EXPECT_EQ(Push(1, 0, Token(1), {5, 6}, {1, 2, 3, 4}).code, ApplyCode::kSkipped);
  EXPECT_EQ(Push(1, 0, Token(9), {5, 6}, {1, 2, 3, 4}).code, ApplyCode::kSkipped);
  EXPECT_THAT(Pull(5), ElementsAre(1, 2));
  EXPECT_EQ(Push(1, 1, Token(1), {5}, {10, 10}).code, ApplyCode::kApplied);
  EXPECT_EQ(Push(2, 0, Token(1), {6}, {10, 10}).code, ApplyCode::kApplied);
  EXPECT_THAT(Pull(5), ElementsAre(11, 12));
  EXPECT_THAT(Pull(6), ElementsAre(13, 14));
}

TEST_F(PartitionTest, TheFloorComesBeforeTheWindow) {
  Push(1, 0, Token(5), {5}, {1, 1});
  partition_.Forget(Forgetting(1, Token(6)));
  // Forgotten: without the floor this late push would count twice.
  EXPECT_EQ(Push(1, 0, Token(5), {5}, {1, 1}).code, ApplyCode::kStaleLease);
  EXPECT_EQ(Push(2, 0, Token(6), {5}, {1, 1}).code, ApplyCode::kApplied);
  // An older state does not lower the floor.
  partition_.Forget(Forgetting(7, Token(2)));
  EXPECT_EQ(partition_.floor(), Token(6));
  EXPECT_THAT(Pull(5), ElementsAre(2, 2));
}

TEST_F(PartitionTest, AQuestionIsAnsweredByTheWindowAndChangesNothing) {
  const auto ask = [&](uint32_t minibatch, LeaseToken token) {
    return partition_.Apply({Shard(4), MinibatchIndex(minibatch), token, 0, {}}).code;
  };
  Push(4, 0, Token(5), {1}, {1, 1});
  EXPECT_EQ(ask(0, Token(5)), ApplyCode::kSkipped);
  EXPECT_EQ(ask(1, Token(5)), ApplyCode::kMissing);
  EXPECT_EQ(ask(1, Token(5)), ApplyCode::kMissing) << "to ask is not to push";
  EXPECT_EQ(Push(4, 1, Token(5), {1}, {1, 1}).code, ApplyCode::kApplied);
  partition_.Forget(Forgetting(9, Token(6)));
  EXPECT_EQ(ask(0, Token(5)), ApplyCode::kStaleLease) << "the window may have been forgotten";
}

TEST_F(PartitionTest, ForgettingDropsTheNamedShardsOnly) {
  Push(1, 0, Token(1), {5}, {1, 1});
  Push(2, 0, Token(1), {5}, {1, 1});
  partition_.Forget(Forgetting(1, Token(1)));
  EXPECT_FALSE(partition_.InWindow(Shard(1), MinibatchIndex(0)));
  EXPECT_TRUE(partition_.InWindow(Shard(2), MinibatchIndex(0)));
  EXPECT_EQ(partition_.sizes().window_shards, 1u);
}

TEST_F(PartitionTest, APartThatIsRefusedChangesNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<uint64_t> good{5};
  const std::vector<float> ones{1, 1};
  struct Case {
    PartGroup bad;
    ApplyCode code;
    const char* text;
  };
  const std::vector<uint64_t> key{8}, block{3};
  const std::vector<float> short_row{1}, long_row{1, 1, 1}, with_nan{1, nan},
      with_infinity{-infinity, 1};
  const Case cases[] = {
      {{TableId(9), key, ones}, ApplyCode::kUnknownTable, "table 9"},
      {{kSparse, key, short_row},
       ApplyCode::kBadRequest,
       "rows of 2 floats, but 1 keys come with 1 floats, not 2"},
      {{kSparse, key, long_row}, ApplyCode::kBadRequest, "1 keys come with 3 floats, not 2"},
      {{kDense, block, ones}, ApplyCode::kBadRequest, "block 3 of dense table 'bias'"},
      {{kSparse, key, with_nan},
       ApplyCode::kBadRequest,
       "table 'counts': the gradient of key 8 has nan in column 1"},
      {{kDense, good, ones}, ApplyCode::kBadRequest, "it has 3"},
      {{kSparse, key, with_infinity}, ApplyCode::kBadRequest, "-inf in column 0"},
  };
  partition_.Snapshot(Number(1), SnapshotKind::kBase);
  partition_.Accepted(Number(1));
  for (const Case& c : cases) {
    // The good group comes first: it would be applied by code that checks group by group.
    const Part part{Shard(1), MinibatchIndex(0), Token(1), 0, {{kSparse, good, ones}, c.bad}};
    const ApplyResult result = partition_.Apply(part);
    EXPECT_EQ(result.code, c.code);
    EXPECT_THAT(result.text, HasSubstr(c.text));
    EXPECT_FALSE(partition_.InWindow(Shard(1), MinibatchIndex(0)));
    EXPECT_EQ(partition_.sizes().rows, 0u);
    EXPECT_TRUE(partition_.UnchangedSinceAccepted());
  }
}

TEST_F(PartitionTest, AnOverflowRefusesItsPushAndEveryLaterOneWithTableAndKey) {
  const float large = 3e38f;
  EXPECT_EQ(Push(1, 0, Token(1), {4, 5}, {1, 1, 1, large}).code, ApplyCode::kApplied);
  const auto expect_refused = [&](const ApplyResult& result) {
    EXPECT_EQ(result.code, ApplyCode::kBadRequest);
    EXPECT_THAT(result.text, HasSubstr("table 'counts': the row of key 5 has inf in column 1"));
  };
  expect_refused(Push(1, 1, Token(1), {4, 5}, {1, 1, 1, large}));
  EXPECT_TRUE(partition_.InWindow(Shard(1), MinibatchIndex(1)));
  {
    SCOPED_TRACE("it comes again, in the window");
    expect_refused(Push(1, 1, Token(2), {4, 5}, {1, 1, 1, large}));
  }
  {
    SCOPED_TRACE("other shards, rows and tables");
    expect_refused(Push(2, 0, Token(2), {4}, {1, 1}));
    expect_refused(Push(3, 0, Token(2), {0}, {1, 1}, kDense));
  }
  {
    SCOPED_TRACE("a question");
    expect_refused(partition_.Apply({Shard(1), MinibatchIndex(0), Token(2), 0, {}}));
  }
  partition_.Forget(Forgetting(1, Token(2)));
  EXPECT_EQ(Push(2, 0, Token(1), {4}, {1, 1}).code, ApplyCode::kStaleLease);
  Partition restored(PartitionId(3), 7);
  const PartitionImage image = partition_.Snapshot(Number(1), SnapshotKind::kBase);
  ASSERT_THAT(restored.Restore(Number(1), std::span(&image, 1)), IsOk());
  const std::vector<uint64_t> key{4};
  const std::vector<float> ones{1, 1};
  expect_refused(
      restored.Apply({Shard(4), MinibatchIndex(0), Token(2), 0, {{kSparse, key, ones}}}));
}

TEST_F(PartitionTest, AMinibatchIndexOutOfBoundsIsRefused) {
  const ApplyResult result = Push(1, Window::kMinibatchesMax, Token(1), {5}, {1, 1});
  EXPECT_EQ(result.code, ApplyCode::kBadRequest);
  EXPECT_THAT(result.text, HasSubstr("at most 1048576 minibatches"));
}

TEST_F(PartitionTest, PullsCreateNothingAndPushesStartFromTheInitialValue) {
  EXPECT_THAT(Pull(0, kDense), ElementsAre(7, 7));
  EXPECT_THAT(Pull(2, kDense), ElementsAre(7, 0));  // padding is zero
  EXPECT_EQ(partition_.sizes().rows, 0u);
  Push(1, 0, Token(1), {0}, {1, 2}, kDense);
  EXPECT_THAT(Pull(0, kDense), ElementsAre(8, 9));
  EXPECT_EQ(partition_.sizes().rows, 1u);
}

TEST_F(PartitionTest, BadPullsAreExplained) {
  std::vector<float> values(2);
  const uint64_t key = 3;
  EXPECT_THAT(partition_.Pull(TableId(8), std::span(&key, 1), values),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("table 8")));
  EXPECT_THAT(partition_.Pull(kDense, std::span(&key, 1), values),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("block 3")));
  EXPECT_THAT(partition_.Pull(kSparse, std::span(&key, 1), std::span(values).first(1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rows of 2 floats")));
}

TEST_F(PartitionTest, ADeltaHoldsWhatChangedSinceTheAcceptedSnapshot) {
  Push(1, 0, Token(1), {5, 6}, {1, 1, 1, 1});
  EXPECT_THAT(KeysOf(partition_.Snapshot(Number(1), SnapshotKind::kBase)),
              UnorderedElementsAre(5, 6));
  Push(1, 1, Token(1), {6}, {1, 1});
  partition_.Accepted(Number(1));
  EXPECT_EQ(partition_.sizes().dirty_rows, 1u);
  // Never accepted: its rows come again, with what changed meanwhile.
  EXPECT_THAT(KeysOf(partition_.Snapshot(Number(2), SnapshotKind::kDelta)),
              UnorderedElementsAre(6));
  Push(1, 2, Token(1), {7}, {1, 1});
  EXPECT_THAT(KeysOf(partition_.Snapshot(Number(3), SnapshotKind::kDelta)),
              UnorderedElementsAre(6, 7));
  Push(1, 3, Token(1), {7}, {1, 1});
  partition_.Accepted(Number(3));
  EXPECT_THAT(KeysOf(partition_.Snapshot(Number(4), SnapshotKind::kDelta)),
              UnorderedElementsAre(7));
  // A base holds everything, and its acceptance counts as a delta's does.
  EXPECT_THAT(KeysOf(partition_.Snapshot(Number(5), SnapshotKind::kBase)),
              UnorderedElementsAre(5, 6, 7));
  partition_.Accepted(Number(5));
  EXPECT_THAT(KeysOf(partition_.Snapshot(Number(6), SnapshotKind::kDelta)), IsEmpty());
}

TEST_F(PartitionTest, SizesAreThoseOfAllTables) {
  EXPECT_EQ(partition_.sizes().rows, 0u);
  Push(1, 0, Token(1), {5, 6, 7}, {1, 1, 1, 1, 1, 1});
  const uint64_t sparse_bytes = partition_.sizes().row_bytes;
  EXPECT_GE(sparse_bytes, 3 * (2 * sizeof(float) + sizeof(uint64_t)));
  partition_.Snapshot(Number(1), SnapshotKind::kBase);
  partition_.Accepted(Number(1));
  Push(2, 0, Token(1), {0, 2}, {1, 1, 1, 1}, kDense);
  const Partition::Sizes sizes = partition_.sizes();
  EXPECT_EQ(sizes.rows, 5u);
  EXPECT_EQ(sizes.dirty_rows, 2u);
  EXPECT_EQ(sizes.window_shards, 2u);
  EXPECT_GT(sizes.row_bytes, sparse_bytes);
}

TEST_F(PartitionTest, AcceptingAnOlderOrUnknownSnapshotChangesNothing) {
  Push(1, 0, Token(1), {5}, {1, 1});
  partition_.Snapshot(Number(1), SnapshotKind::kBase);
  Push(1, 1, Token(1), {6}, {1, 1});
  partition_.Snapshot(Number(2), SnapshotKind::kDelta);
  partition_.Accepted(Number(2));
  Push(1, 2, Token(1), {5}, {1, 1});
  partition_.Accepted(Number(1));
  partition_.Accepted(Number(2));  // told again
  partition_.Accepted(Number(77));
  EXPECT_THAT(KeysOf(partition_.Snapshot(Number(3), SnapshotKind::kDelta)),
              UnorderedElementsAre(5));
}

TEST_F(PartitionTest, UnchangedMeansThatTheAcceptedSnapshotMayStandForTheState) {
  EXPECT_FALSE(partition_.UnchangedSinceAccepted());  // its tables are in no snapshot yet
  EXPECT_TRUE(Partition(PartitionId(0), 7).UnchangedSinceAccepted());
  partition_.Snapshot(Number(1), SnapshotKind::kBase);
  EXPECT_FALSE(partition_.UnchangedSinceAccepted());
  partition_.Accepted(Number(1));
  EXPECT_TRUE(partition_.UnchangedSinceAccepted());
  Push(1, 0, Token(1), {}, {});  // no rows, but a window entry
  EXPECT_FALSE(partition_.UnchangedSinceAccepted());
  partition_.Snapshot(Number(2), SnapshotKind::kDelta);
  Push(1, 1, Token(1), {5}, {1, 1});  // after the image was taken
  partition_.Accepted(Number(2));
  EXPECT_FALSE(partition_.UnchangedSinceAccepted());
  partition_.Snapshot(Number(3), SnapshotKind::kDelta);
  partition_.Accepted(Number(3));
  partition_.Forget(Forgetting(1, Token(2)));
  EXPECT_TRUE(partition_.UnchangedSinceAccepted());
}

TEST_F(PartitionTest, RestoreBringsBackRowsWindowFloorAndTables) {
  Push(1, 0, Token(3), {5, 6}, {1, 1, 1, 1});
  partition_.Forget(Forgetting(9, Token(2)));
  std::vector<PartitionImage> images{partition_.Snapshot(Number(1), SnapshotKind::kBase)};
  partition_.Accepted(Number(1));
  Push(1, 1, Token(3), {6, 7}, {1, 1, 1, 1});
  Push(2, 0, Token(3), {1}, {1, 1}, kDense);
  partition_.Forget(Forgetting(1, Token(3)));
  images.push_back(partition_.Snapshot(Number(2), SnapshotKind::kDelta));

  Partition restored(PartitionId(3), 7);
  ASSERT_THAT(restored.Restore(Number(2), images), IsOk());
  EXPECT_TRUE(restored.KnowsTable(kSparse));
  EXPECT_THAT(Pull(restored, 5), ElementsAre(1, 1));
  EXPECT_THAT(Pull(restored, 6), ElementsAre(2, 2));
  EXPECT_THAT(Pull(restored, 7), ElementsAre(1, 1));
  EXPECT_THAT(Pull(restored, 1, kDense), ElementsAre(8, 8));
  EXPECT_EQ(restored.floor(), Token(3));
  EXPECT_FALSE(restored.InWindow(Shard(1), MinibatchIndex(0)));  // forgotten in the newest image
  EXPECT_TRUE(restored.InWindow(Shard(2), MinibatchIndex(0)));
  EXPECT_TRUE(restored.UnchangedSinceAccepted());
  EXPECT_EQ(restored.sizes().rows, 4u);
  EXPECT_THAT(KeysOf(restored.Snapshot(Number(3), SnapshotKind::kDelta)), IsEmpty());

  ASSERT_THAT(restored.Restore(Number(0), {}), IsOk());  // never snapshotted: empty
  EXPECT_EQ(restored.sizes().rows, 0u);
  EXPECT_FALSE(restored.KnowsTable(kSparse));
}

TEST_F(PartitionTest, ARestoreFreesWhatItOutgrewByItself) {
  PartitionImage image;
  image.kind = SnapshotKind::kBase;
  image.tables = {SparseSum()};
  image.rows = {{kSparse, 2, std::vector<uint64_t>(150'000), std::vector<float>(300'000, 1)}};
  std::iota(image.rows[0].keys.begin(), image.rows[0].keys.end(), 0);
  ASSERT_THAT(partition_.Restore(Number(1), std::span(&image, 1)), IsOk());
  EXPECT_EQ(partition_.sizes().rows, 150'000u);
  Garbage garbage;
  partition_.TakeGarbage(&garbage);
  EXPECT_TRUE(garbage.empty());
}

TEST_F(PartitionTest, ImagesThatContradictThemselvesAreRefusedAndLeaveTheStateAlone) {
  Push(1, 0, Token(1), {5}, {1, 1});
  const PartitionImage good = partition_.Snapshot(Number(1), SnapshotKind::kBase);
  const auto refused = [&](PartitionImage image, const char* text) {
    EXPECT_THAT(partition_.Restore(Number(1), std::span(&image, 1)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(text)));
    EXPECT_THAT(Pull(5), ElementsAre(1, 1));
  };
  PartitionImage image = good;
  image.kind = SnapshotKind::kDelta;
  refused(
      image,
      "image 1 of 1 of snapshot 1.1 of partition 3: a chain must be one base followed by deltas");
  image = good;
  image.tables.erase(image.tables.begin());
  refused(image, "rows of table 1, but does not define it");
  image = good;
  image.rows[0].rows.pop_back();
  refused(image, "of table 'counts' have 2 floats each (1 in all), not 2");
  image = good;
  image.rows[0].table = kDense;
  refused(image, "block 5 of dense table 'bias'");
  PartitionImage other = good;
  other.kind = SnapshotKind::kDelta;
  other.tables[0].optimizer = SgdSpec{};
  EXPECT_THAT(partition_.Restore(Number(1), std::vector<PartitionImage>{good, other}),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("image 2 of 2 "), HasSubstr("differs from"))));
}

class FixedRows : public WarmStartSource {
 public:
  void ForEachRow(PartitionId partition,
                  absl::FunctionRef<void(uint64_t, std::span<const float>)> row) const override {
    if (partition != PartitionId(3)) return;
    const float values[] = {1.5f, 2.5f};
    row(42, values);
  }
};

TEST(PartitionWarmStartTest, ANewTableStartsFromTheGivenRowsAndARestoredOneDoesNot) {
  TableSpec spec = SparseSum();
  spec.optimizer = AdagradSpec{.learning_rate = 1, .initial_accumulator = 0.25f};
  spec.warm_start_directory = "export";
  const FixedRows source;
  Partition partition(PartitionId(3), 7);
  partition.AddTable(spec, &source);
  const uint64_t key = 42;
  std::vector<float> values(2);
  ASSERT_THAT(partition.Pull(kSparse, std::span(&key, 1), values), IsOk());
  EXPECT_THAT(values, ElementsAre(1.5f, 2.5f));
  std::vector<PartitionImage> images{partition.Snapshot(Number(1), SnapshotKind::kBase)};
  ASSERT_EQ(images[0].rows.size(), 1u);
  EXPECT_THAT(images[0].rows[0].rows, ElementsAre(1.5f, 2.5f, 0.25f, 0.25f));

  images[0].rows[0].rows[0] = 9;  // trained since
  Partition restored(PartitionId(3), 7);
  ASSERT_THAT(restored.Restore(Number(1), images), IsOk());
  restored.AddTable(spec, &source);
  restored.AddTable(spec);  // known: the source is not needed
  ASSERT_THAT(restored.Pull(kSparse, std::span(&key, 1), values), IsOk());
  EXPECT_THAT(values, ElementsAre(9, 2.5f));
}

/// Random pushes, snapshots (some lost), acceptances and restores, against a plain map of counts.
TEST(PartitionRandomTest, ARestoredChainEqualsTheStateAtItsSnapshot) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    Partition partition(PartitionId(0), seed);
    partition.AddTable(SparseSum());
    std::map<uint64_t, float> truth;
    std::set<std::pair<uint64_t, uint32_t>> applied;
    std::vector<PartitionImage> accepted_chain;
    SnapshotNumber accepted;
    uint64_t number = 0;
    struct Pending {
      SnapshotNumber number;
      std::vector<PartitionImage> chain;
      std::map<uint64_t, float> truth;
      std::set<std::pair<uint64_t, uint32_t>> applied;
    };
    std::vector<Pending> pending;
    Pending last;  // what the accepted chain stands for
    for (int step = 0; step < 120; ++step) {
      const uint64_t action = rng.Below(10);
      if (action < 6) {
        const uint64_t shard = rng.Below(6);
        const uint32_t minibatch = static_cast<uint32_t>(rng.Below(3));
        std::vector<uint64_t> keys;
        for (uint64_t key = 0; key < 20; ++key) {
          if (rng.Below(4) == 0) keys.push_back(key);
        }
        const std::vector<float> ones(keys.size() * 2, 1);
        const Part part{
            Shard(shard), MinibatchIndex(minibatch), Token(1), 0, {{kSparse, keys, ones}}};
        const bool fresh = applied.insert({shard, minibatch}).second;
        ASSERT_EQ(partition.Apply(part).code, fresh ? ApplyCode::kApplied : ApplyCode::kSkipped);
        if (fresh) {
          for (const uint64_t key : keys) truth[key] += 1;
        }
      } else if (action < 8) {
        const bool full = accepted_chain.empty() || rng.Below(4) == 0;
        Pending taken{Number(++number), {}, truth, applied};
        if (!full) taken.chain = accepted_chain;
        taken.chain.push_back(
            partition.Snapshot(taken.number, full ? SnapshotKind::kBase : SnapshotKind::kDelta));
        if (rng.Below(3) != 0) pending.push_back(std::move(taken));  // else the write failed
      } else if (action == 8 && !pending.empty()) {
        const size_t which = rng.Below(pending.size());
        last = pending[which];
        accepted = last.number;
        accepted_chain = last.chain;
        pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(which) + 1);
        partition.Accepted(accepted);
      } else if (action == 9 && !accepted_chain.empty()) {
        Partition other(PartitionId(0), seed);
        ASSERT_THAT(other.Restore(accepted, accepted_chain), IsOk());
        ASSERT_EQ(other.sizes().rows, last.truth.size());
        for (const auto& [key, count] : last.truth) {
          std::vector<float> values(2);
          ASSERT_THAT(other.Pull(kSparse, std::span(&key, 1), values), IsOk());
          ASSERT_THAT(values, ElementsAre(count, count)) << "seed " << seed << " key " << key;
        }
        for (uint64_t shard = 0; shard < 6; ++shard) {
          for (uint32_t minibatch = 0; minibatch < 3; ++minibatch) {
            ASSERT_EQ(other.InWindow(Shard(shard), MinibatchIndex(minibatch)),
                      last.applied.contains({shard, minibatch}));
          }
        }
      }
    }
  }
}

}  // namespace partition_test
}  // namespace muster::ps
