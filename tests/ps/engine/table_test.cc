#include "ps/engine/table.h"

#include <map>
#include <numeric>
#include <set>

#include "base/random.h"
#include "ps/engine/initializer.h"
#include "ps/engine/optimizer.h"
#include "ps/engine/schedule.h"
#include "tests/support/status_matchers.h"

namespace muster::ps {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TableSpec Spec(uint32_t dim, OptimizerSpec optimizer) {
  TableSpec spec;
  spec.id = TableId(4);
  spec.name = "t";
  spec.dim = dim;
  spec.optimizer = optimizer;
  spec.initializer = {InitializerSpec::Kind::kUniform, -1, 1};
  return spec;
}

/// In slices of this much work, each of which must get somewhere.
constexpr uint64_t kSlice = 5'000;

void Apply(Table* table, std::span<const uint64_t> keys, std::span<const float> gradients,
           uint64_t step) {
  while (!keys.empty()) {
    WorkLimit work(kSlice);
    const size_t rows = table->Apply(keys, gradients, step, &work);
    ASSERT_GT(rows, 0u);
    keys = keys.subspan(rows);
    gradients = gradients.subspan(rows * table->dim());
  }
}
void Pull(const Table& table, std::span<const uint64_t> keys, std::span<float> values) {
  while (!keys.empty()) {
    WorkLimit work(kSlice);
    const size_t rows = table.Pull(keys, values, &work);
    ASSERT_GT(rows, 0u);
    keys = keys.subspan(rows);
    values = values.subspan(rows * table.dim());
  }
}
RowImage Image(Table* table, Table::Rows which) {
  table->BeginImage(which);
  for (bool whole = false; !whole;) {
    WorkLimit work(100);
    whole = table->CopyImage(&work);
  }
  return table->TakeImage();
}

/// The batched paths against rows kept one by one in a map.
TEST(TableTest, BatchesOfRandomKeysEqualRowsKeptOneByOne) {
  const OptimizerSpec optimizers[] = {SumSpec{}, AdagradSpec{.learning_rate = 0.1f}, AdamSpec{},
                                      RowwiseAdagradSpec{}};
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed);
    const uint32_t dim = static_cast<uint32_t>(1 + rng.Below(33));
    TableSpec spec = Spec(dim, optimizers[seed % 4]);
    spec.schedule.warmup_steps = 5;
    Table table(spec, seed);
    std::map<uint64_t, std::vector<float>> truth;
    for (uint64_t step = 0; step < 12; ++step) {
      std::map<uint64_t, std::vector<float>> part;
      const uint64_t count = rng.Below(300);  // more and less than one batch
      for (uint64_t i = 0; i < count; ++i) {
        std::vector<float>& gradient = part[rng.Below(500) << 50];
        gradient.resize(dim);
        for (float& value : gradient) value = static_cast<float>(rng.Uniform()) - 0.5f;
      }
      std::vector<uint64_t> keys;
      std::vector<float> gradients;
      for (const auto& [key, gradient] : part) {
        keys.push_back(key);
        gradients.insert(gradients.end(), gradient.begin(), gradient.end());
        auto [row, fresh] = truth.try_emplace(key, dim + SlotFloats(spec.optimizer, dim));
        if (fresh) {
          InitialRow(spec, seed, key, std::span(row->second).first(dim));
          InitSlots(spec.optimizer, dim, row->second.data());
        }
        float* const rows[] = {row->second.data()};
        ApplyRows(spec.optimizer, ScheduleFactor(spec.schedule, step), dim, rows, gradient.data());
      }
      ASSERT_TRUE(table.CheckPush(keys, gradients).ok());
      if (step % 2 == 0) {
        Apply(&table, keys, gradients, step);
      } else {
        WorkLimit work = WorkLimit::None();
        ASSERT_EQ(table.Apply(keys, gradients, step, &work), keys.size());
      }
    }
    ASSERT_EQ(table.rows(), truth.size());
    ASSERT_EQ(table.dirty_rows(), truth.size());
    std::vector<uint64_t> keys;
    std::vector<float> expected;
    for (uint64_t key = 0; key < 600; ++key) {  // absent ones among them
      keys.push_back(key << 50);
      std::vector<float> row(dim);
      if (const auto found = truth.find(key << 50); found != truth.end()) {
        row.assign(found->second.begin(), found->second.begin() + dim);
      } else {
        InitialRow(spec, seed, key << 50, row);
      }
      expected.insert(expected.end(), row.begin(), row.end());
    }
    std::vector<float> values(expected.size());
    Pull(table, keys, values);
    ASSERT_EQ(values, expected) << "seed " << seed;
    std::ranges::fill(values, -1.0f);
    WorkLimit work = WorkLimit::None();
    ASSERT_EQ(table.Pull(keys, values, &work), keys.size());
    ASSERT_EQ(values, expected) << "in one go";
    const RowImage image = Image(&table, Table::Rows::kAll);
    for (size_t i = 0; i < image.keys.size(); ++i) {
      const auto begin = image.rows.begin() + static_cast<std::ptrdiff_t>(i * image.floats_per_row);
      ASSERT_EQ(std::vector<float>(begin, begin + image.floats_per_row), truth.at(image.keys[i]));
    }
  }
}

TEST(TableTest, AKeyThatComesTwiceTakesTwoSteps) {
  Table table(Spec(1, SumSpec{}), 0);
  const std::vector<uint64_t> keys{3, 3};
  const std::vector<float> gradients{1, 2};
  float before = 0, after = 0;
  Pull(table, std::span(keys).first(1), {&before, 1});
  Apply(&table, keys, gradients, 0);
  Pull(table, std::span(keys).first(1), {&after, 1});
  EXPECT_FLOAT_EQ(after, before + 3);
  EXPECT_EQ(table.rows(), 1u);
  EXPECT_EQ(table.dirty_rows(), 1u);
}

/// A table of single floats and what may happen to it.
TEST(TableTest, AnOverflowOfASlotIsNotedToo) {
  Table table(Spec(2, AdagradSpec{}), 7);
  const uint64_t key = 9;
  Apply(&table, {&key, 1}, std::vector<float>{1, 1}, 0);
  EXPECT_EQ(table.not_finite(), "");
  Apply(&table, {&key, 1}, std::vector<float>{1, 1e20f}, 0);  // its square is infinite
  EXPECT_EQ(table.not_finite(), "table 't': the row of key 9 has inf in its optimizer's state");
}

class DirtyRowsTest : public ::testing::Test {
 protected:
  void Push(std::vector<uint64_t> keys) {
    const std::vector<float> ones(keys.size(), 1);
    Apply(&table_, keys, ones, 0);
  }
  std::vector<uint64_t> Image(Table::Rows which = Table::Rows::kDirty) {
    return ps::Image(&table_, which).keys;
  }

  Table table_{Spec(1, SumSpec{}), 0};
};

TEST_F(DirtyRowsTest, AreThoseChangedAfterTheAcceptedImage) {
  const std::vector<float> row{5};
  table_.SetRow(9, row);  // restored: clean
  Push({1, 2});
  EXPECT_THAT(Image(), UnorderedElementsAre(1, 2));
  Push({2, 3});
  EXPECT_EQ(table_.dirty_rows(), 3u);
  table_.Accept();
  EXPECT_EQ(table_.dirty_rows(), 2u);
  EXPECT_THAT(Image(), UnorderedElementsAre(2, 3));
  Push({1, 9});
  table_.Accept();
  EXPECT_THAT(Image(), UnorderedElementsAre(1, 9));
  table_.Accept();
  EXPECT_EQ(table_.dirty_rows(), 0u);
  EXPECT_EQ(Image(Table::Rows::kAll).size(), 4u);
}

TEST_F(DirtyRowsTest, OfAnImageThatIsNotAcceptedComeAgainOnce) {
  Push({1, 2});
  Image();
  Push({2, 3});
  EXPECT_THAT(Image(), UnorderedElementsAre(1, 2, 3));
  EXPECT_THAT(Image(), UnorderedElementsAre(1, 2, 3));
  Push({3});
  EXPECT_EQ(Image(Table::Rows::kAll).size(), 3u);
  table_.Accept();
  EXPECT_EQ(table_.dirty_rows(), 0u) << "a whole image has the dirty rows, too";
}

TEST_F(DirtyRowsTest, OfATableThatIsInNoImageStayDirty) {
  Push({1});
  table_.Accept();
  EXPECT_EQ(table_.dirty_rows(), 1u);
  EXPECT_THAT(Image(), UnorderedElementsAre(1));
}

/// Pushes, images and acceptances in any order, against sets of keys.
TEST_F(DirtyRowsTest, InAnyOrderAreWhatTheModelSays) {
  Rng rng(11);
  std::set<uint64_t> changed, imaged;
  for (int step = 0; step < 5000; ++step) {
    const uint64_t action = rng.Below(10);
    if (action < 7) {
      const uint64_t key = rng.Below(50);
      Push({key});
      changed.insert(key);
    } else if (action < 9) {
      const auto which = rng.Below(2) == 0 ? Table::Rows::kAll : Table::Rows::kDirty;
      imaged.merge(changed);
      changed.clear();
      const std::vector<uint64_t> keys = Image(which);
      if (which == Table::Rows::kDirty) {
        ASSERT_EQ(std::multiset<uint64_t>(keys.begin(), keys.end()),
                  std::multiset<uint64_t>(imaged.begin(), imaged.end()));
      } else {
        ASSERT_EQ(keys.size(), table_.rows());
      }
    } else {
      table_.Accept();
      imaged.clear();
    }
    std::set<uint64_t> dirty = changed;
    dirty.insert(imaged.begin(), imaged.end());
    ASSERT_EQ(table_.dirty_rows(), dirty.size()) << "step " << step;
  }
}

/// Images under work while rows change, against a copy of the rows at the cut.
TEST(TableTest, AnImageIsTheTableAtTheCutWhateverChangesWhileItIsCopied) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    Table table(Spec(2, SumSpec{}), seed);
    std::map<uint64_t, std::vector<float>> now;
    std::set<uint64_t> dirty;
    const auto push = [&](uint64_t count) {
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t key = rng.Below(200);
        Apply(&table, {&key, 1}, std::vector<float>{1, 2}, 0);
        std::vector<float> row(2);
        Pull(table, {&key, 1}, row);
        now[key] = row;
        dirty.insert(key);
      }
    };
    for (int round = 0; round < 20; ++round) {
      push(rng.Below(60));
      const auto which = rng.Below(2) == 0 ? Table::Rows::kAll : Table::Rows::kDirty;
      const auto at_cut = now;
      const auto dirty_at_cut = dirty;
      table.BeginImage(which);
      for (bool whole = false; !whole;) {
        push(rng.Below(3));
        WorkLimit work(1 + rng.Below(200));
        whole = table.CopyImage(&work);
      }
      if (rng.Below(4) == 0) {
        table.DropImage();
        continue;
      }
      const RowImage image = table.TakeImage();
      ASSERT_EQ(image.keys.size(),
                which == Table::Rows::kAll ? at_cut.size() : dirty_at_cut.size());
      std::set<uint64_t> keys(image.keys.begin(), image.keys.end());
      ASSERT_EQ(keys.size(), image.keys.size()) << "no row comes twice";
      for (size_t i = 0; i < image.keys.size(); ++i) {
        ASSERT_EQ(at_cut.at(image.keys[i])[0], image.rows[2 * i]) << "seed " << seed;
        ASSERT_TRUE(which == Table::Rows::kAll || dirty_at_cut.contains(image.keys[i]));
      }
      if (rng.Below(2) == 0) continue;
      table.Accept();
      std::erase_if(dirty, [&](uint64_t key) {
        return at_cut.contains(key) && at_cut.at(key) == now.at(key);
      });
      ASSERT_EQ(table.dirty_rows(), dirty.size());
    }
  }
}

TEST(TableTest, ASliceDoesNoMoreThanItsLimitWhateverTheTableHolds) {
  Table table(Spec(8, SumSpec{}), 0);
  std::vector<uint64_t> keys(20'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const std::vector<float> ones(keys.size() * 8, 1);
  WorkLimit first(100'000);
  const size_t created = table.Apply(keys, ones, 0, &first);
  EXPECT_GT(created, 50u);
  EXPECT_LT(created, 1000u);
  Apply(&table, keys, ones, 0);
  WorkLimit second(100'000);
  EXPECT_GT(table.Apply(keys, ones, 0, &second), created) << "rows that exist cost less";
  std::vector<float> values(ones.size());
  WorkLimit pull(100'000);
  EXPECT_LT(table.Pull(keys, values, &pull), 1000u);
  table.BeginImage(Table::Rows::kAll);
  size_t slices = 1;
  for (WorkLimit work(10'000); !table.CopyImage(&work); work = WorkLimit(10'000)) ++slices;
  EXPECT_GT(slices, 20'000u * 8 * 4 * 2 / 10'000 / 2);
  EXPECT_EQ(table.TakeImage().keys.size(), keys.size());
}

/// With one float and with many in a row, with slots and without.
TEST(TableTest, ASliceMovesAsManyBytesAsItsLimitSays) {
  constexpr uint64_t kLimit = 400'000;
  for (const OptimizerSpec& optimizer : {OptimizerSpec(SumSpec{}), OptimizerSpec(AdamSpec{})}) {
    constexpr uint32_t kDim = 256;
    Table table(Spec(kDim, optimizer), 0);
    std::vector<uint64_t> keys(500), absent(500);
    std::iota(keys.begin(), keys.end(), 0);
    std::iota(absent.begin(), absent.end(), 1'000);
    const std::vector<float> gradients(keys.size() * kDim, 0.5f);
    std::vector<float> values(gradients.size());
    const auto push = [&] {
      WorkLimit work(kLimit);
      return table.Apply(keys, gradients, 0, &work);
    };
    const auto pull = [&](std::span<const uint64_t> some) {
      WorkLimit work(kLimit);
      return table.Pull(some, values, &work);
    };
    // Wide rows: what else a row costs is below a tenth.
    const auto about = [](uint64_t bytes_each) {
      const uint64_t most = kLimit / bytes_each;
      return ::testing::AllOf(::testing::Le(most), ::testing::Ge(most - most / 10 - 1));
    };
    const uint64_t row = uint64_t{table.floats_per_row()} * sizeof(float);
    const uint64_t gradient = kDim * sizeof(float);
    const size_t created = push();
    Apply(&table, keys, gradients, 0);
    EXPECT_THAT(push(), about(gradient + 2 * row));
    EXPECT_LT(created, push()) << "to compute initial values is work, too";
    EXPECT_THAT(pull(keys), about(2 * gradient));
    EXPECT_LT(pull(absent), pull(keys) / 2) << "initial values";
    const uint64_t image = keys.size() * 2 * row;
    for (const auto which : {Table::Rows::kAll, Table::Rows::kDirty}) {
      table.BeginImage(which);
      uint64_t slices = 1;
      for (WorkLimit work(10'000); !table.CopyImage(&work); work = WorkLimit(10'000)) ++slices;
      EXPECT_GE(slices, image / (10'000 + 2 * row));
      EXPECT_LE(slices, image / 10'000 + 10);
      EXPECT_THAT(push(), about(gradient + 4 * row)) << "the image may need the rows as they were";
      table.TakeImage();
    }
  }
}

TEST(TableTest, ToFindARowIsWorkHoweverSmallItIs) {
  Table table(Spec(1, SumSpec{}), 0);
  std::vector<uint64_t> keys(5'000);
  std::iota(keys.begin(), keys.end(), 0);
  std::vector<float> values(keys.size(), 1);
  Apply(&table, keys, values, 0);
  WorkLimit push(100'000), pull(100'000);
  EXPECT_LT(table.Apply(keys, values, 0, &push), 1'000u);
  EXPECT_LT(table.Pull(keys, values, &pull), 1'000u);
  WorkLimit rows(keys.size() * 8 + 1), lists(1'000);
  Image(&table, Table::Rows::kDirty);
  table.BeginImage(Table::Rows::kAll);  // the image before was not accepted
  Apply(&table, keys, values, 0);       // so every row is copied
  EXPECT_FALSE(table.CopyImage(&rows)) << "its list is left to be merged";
  EXPECT_FALSE(table.CopyImage(&lists));
}

TEST(TableTest, BytesAreThoseOfRowsIndexAndLists) {
  std::vector<uint64_t> keys(10'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const auto filled = [&](uint32_t dim) {
    auto table = std::make_unique<Table>(Spec(dim, SumSpec{}), 0);
    Apply(table.get(), keys, std::vector<float>(keys.size() * dim, 1), 0);
    return table;
  };
  const auto narrow = filled(8), wide = filled(24);
  const uint64_t wider = keys.size() * 16 * sizeof(float);
  EXPECT_GE(wide->bytes() - narrow->bytes(), wider);
  EXPECT_LE(wide->bytes() - narrow->bytes(), wider * 9 / 8) << "some room for rows to come";
  constexpr uint64_t kRow = 8 * sizeof(float) + sizeof(uint64_t), kList = sizeof(uint32_t);
  const uint64_t least = keys.size() * (kRow + sizeof(RowIndex::Entry) + kList);
  EXPECT_GE(narrow->bytes(), least);
  EXPECT_LE(narrow->bytes(), 2 * least);
  const uint64_t dirty = narrow->bytes();
  Image(narrow.get(), Table::Rows::kDirty);
  EXPECT_EQ(narrow->bytes(), dirty) << "the list is kept until the image is accepted";
  narrow->Accept();
  EXPECT_LE(narrow->bytes(), dirty - keys.size() * kList);
  EXPECT_GE(narrow->bytes(), least - keys.size() * kList);
}

TEST(TableTest, HasRoomForLessThanTwoToThe32Rows) {
  Table table(Spec(1, SumSpec{}), 0);
  constexpr size_t kMost = RowIndex::kNoRow - 1;
  EXPECT_TRUE(table.CheckRoom(kMost).ok());
  EXPECT_FALSE(table.CheckRoom(kMost + 1).ok());
  const uint64_t key = 7;
  Apply(&table, {&key, 1}, std::vector<float>{1}, 0);
  EXPECT_TRUE(table.CheckRoom(kMost - 1).ok());
  EXPECT_FALSE(table.CheckRoom(kMost).ok());
}

TEST(TableTest, WhatTakesLongToFreeIsHandedOut) {
  Table table(Spec(1, SumSpec{}), 0);
  std::vector<uint64_t> keys(150'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  Apply(&table, keys, std::vector<float>(keys.size(), 1), 0);
  Garbage outgrown, accepted, nothing;
  table.TakeGarbage(&outgrown);
  EXPECT_FALSE(outgrown.empty()) << "an index that was outgrown";
  Image(&table, Table::Rows::kDirty);
  table.Accept();
  table.TakeGarbage(&accepted);
  EXPECT_FALSE(accepted.empty()) << "the list of the rows that were accepted";
  table.TakeGarbage(&nothing);
  EXPECT_TRUE(nothing.empty());
}

TEST(TableTest, EverySliceThatChangesRowsChangesTheVersion) {
  Table table(Spec(2, SumSpec{}), 7);
  std::set<uint64_t> versions = {0, table.version()};
  const std::vector<uint64_t> keys = {1, 2, 3};
  const std::vector<float> ones(6, 1.0f);
  const auto changed = [&] { return versions.insert(table.version()).second; };
  for (size_t row = 0; row < keys.size();) {
    WorkLimit work(1);
    const std::span rest = std::span(keys).subspan(row);
    row += table.Apply(rest, std::span(ones).subspan(2 * row), 0, &work);
    EXPECT_TRUE(changed());
  }
  table.SetValues(1, std::span(ones).first(2));
  EXPECT_TRUE(changed());
  table.SetRow(9, std::span(ones).first(2));
  EXPECT_TRUE(changed());
  EXPECT_EQ(versions.size(), 7u);

  std::vector<float> values(6);
  Pull(table, keys, values);
  Image(&table, Table::Rows::kAll);
  table.Accept();
  EXPECT_FALSE(changed()) << "nothing has changed";
}

TEST(TableTest, SetValuesGivesFreshSlots) {
  Table table(Spec(2, AdagradSpec{.learning_rate = 1, .initial_accumulator = 0.5f}), 0);
  const uint64_t key = 7;
  const std::vector<float> gradient{1, 1}, values{3, 4};
  Apply(&table, {&key, 1}, gradient, 0);
  Image(&table, Table::Rows::kDirty);
  table.SetValues(key, values);
  table.Accept();
  EXPECT_THAT(Image(&table, Table::Rows::kAll).rows, ElementsAre(3, 4, 0.5f, 0.5f));
  EXPECT_EQ(table.dirty_rows(), 1u);
}

}  // namespace
}  // namespace muster::ps
