// Tables as workers register them and servers hear of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/master/core/core_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using testing::CoreFixture;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::StatusIs;

class TablesTest : public ::testing::Test, protected CoreFixture {};

TEST_F(TablesTest, TablesAreToldOnceAndAConflictShowsBoth) {
  Start();
  Register(5);
  TableSpec table;
  table.name = "embedding";
  table.dim = 16;
  MUSTER_ASSERT_OK_AND_ASSIGN(const TableId id, core->RegisterTable(table, At()));
  MUSTER_ASSERT_OK_AND_ASSIGN(const TableId again, core->RegisterTable(table, At()));
  EXPECT_EQ(id, again);
  ServerExchangeRequest request = ServerRequest();
  EXPECT_THAT(ExchangeServer(request).tables, SizeIs(1));
  request = ServerRequest();
  request.newest_table = id;
  EXPECT_THAT(ExchangeServer(request).tables, IsEmpty());
  table.dim = 17;
  const auto shows_both = [&](const TableSpec& asked) {
    return StatusIs(absl::StatusCode::kAlreadyExists,
                    AllOf(HasSubstr("Registered: " + ToString(core->tables().at(id))),
                          HasSubstr("This one: " + ToString(asked))));
  };
  table.id = id;
  EXPECT_THAT(core->RegisterTable(table, At()), shows_both(table));
  table.dim = 16;
  table.optimizer = AdamSpec{.learning_rate = 0.5f};
  EXPECT_THAT(core->RegisterTable(table, At()), shows_both(table));
  table.name = "other";
  table.dim = 0;
  EXPECT_THAT(core->RegisterTable(table, At()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dim must be in")));
  Restart();
  EXPECT_EQ(core->tables().size(), 1u);
}

TEST_F(TablesTest, AContradictionEndsAJobThatNobodyTrainsAtOnce) {
  Start();
  TableSpec table;
  table.name = "embedding";
  table.dim = 16;
  ASSERT_TRUE(core->RegisterTable(table, At()).ok());
  table.dim = 17;
  const auto grants = Want(1).grants;
  EXPECT_FALSE(core->RegisterTable(table, At()).ok());
  EXPECT_EQ(core->state(), JobState::kRunning) << "a single wrong process stops nobody";
  Done(grants);
  EXPECT_FALSE(core->RegisterTable(table, At()).ok());
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_THAT(core->reason(), HasSubstr("table 'embedding' is already registered with another"));
}

TEST_F(TablesTest, AContradictionInTheGracePeriodIsOfOneProcess) {
  Start();
  TableSpec table;
  table.name = "embedding";
  table.dim = 16;
  ASSERT_TRUE(core->RegisterTable(table, At()).ok());
  Want(1);
  Restart();
  table.dim = 17;
  EXPECT_FALSE(core->RegisterTable(table, At()).ok());
  EXPECT_EQ(core->state(), JobState::kRunning) << "another may have a shard";
}

TEST_F(TablesTest, AQuestionForAWarmStartEndsNothing) {
  Start();
  TableSpec table;
  table.name = "embedding";
  table.dim = 16;
  table.warm_start_directory = "/out";
  EXPECT_FALSE(core->RegisterTable(table, At()).ok());
  EXPECT_EQ(core->state(), JobState::kRunning);
}

TEST_F(TablesTest, ATableThatMakesNoSenseIsRefused) {
  Start();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr uint64_t kMillion = uint64_t{1} << 20;
  struct Row {
    std::function<void(TableSpec*)> change;
    std::string refused;  // empty: it is taken
  };
  const Row rows[] = {
      {[](TableSpec* t) { t->name = std::string(128, 'x'); }, ""},
      {[](TableSpec* t) { t->name = std::string(129, 'x'); }, "its name must have 1 to 128 bytes"},
      {[](TableSpec* t) { t->name = ""; }, "its name must have 1 to 128 bytes"},
      {[](TableSpec* t) { t->dim = 65'536; }, ""},
      {[](TableSpec* t) { t->dim = 65'537; }, "dim must be in [1, 65536]"},
      {[](TableSpec* t) { t->dim = 0; }, "dim must be in [1, 65536]"},
      {[](TableSpec* t) { t->shape.assign(8, 1); }, ""},
      {[](TableSpec* t) { t->shape.assign(9, 1); }, "at most 8 axes"},
      {[](TableSpec* t) { t->shape = {kMillion, kMillion}; }, ""},
      {[](TableSpec* t) { t->shape = {kMillion, kMillion + 1}; }, "at most 1099511627776"},
      {[](TableSpec* t) { t->shape = {kMillion, kMillion, 2}; }, "at most 1099511627776"},
      {[](TableSpec* t) { t->shape = {4, 0}; }, "every axis must be > 0"},
      {[](TableSpec* t) { t->initializer.a = kInfinity; }, "must be finite"},
      {[](TableSpec* t) { t->initializer.b = kInfinity; }, "must be finite"},
      {[](TableSpec* t) { t->schedule.decay = kInfinity; }, "must be finite"},
      {[](TableSpec* t) { t->schedule.final_factor = kInfinity; }, "must be finite"},
  };
  uint32_t taken = 0;
  for (const Row& row : rows) {
    TableSpec table;
    table.name = fmt::format("table-{}", taken);
    table.dim = 16;
    row.change(&table);
    const absl::StatusOr<TableId> id = core->RegisterTable(table, At());
    if (row.refused.empty()) {
      EXPECT_EQ(id.value(), TableId(++taken));
    } else {
      EXPECT_THAT(id.status(),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(row.refused)));
    }
  }
}

TEST_F(TablesTest, AJobHasSoManyTablesAndNoMore) {
  Start();
  TableSpec table;
  table.dim = 1;
  for (uint32_t i = 1; i <= 1'024; ++i) {
    table.name = fmt::format("table-{}", i);
    ASSERT_EQ(core->RegisterTable(table, At()).value(), TableId(i));
  }
  EXPECT_EQ(core->RegisterTable(table, At()).value(), TableId(1'024)) << "it is known";
  table.name = "one more";
  EXPECT_THAT(core->RegisterTable(table, At()),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("at most 1024 tables")));
}

TEST_F(TablesTest, ATableWithAWarmStartIsPinnedToItsExport) {
  Start();
  TableSpec table;
  table.name = "embedding";
  table.dim = 16;
  table.warm_start_directory = "/out";
  EXPECT_THAT(core->RegisterTable(table, At()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("hash of the export /out")));
  table.warm_start_hash = "aa";
  MUSTER_ASSERT_OK_AND_ASSIGN(const TableId id, core->RegisterTable(table, At()));
  table.warm_start_hash.clear();
  MUSTER_ASSERT_OK_AND_ASSIGN(const TableId again, core->RegisterTable(table, At()));
  EXPECT_EQ(id, again);
  EXPECT_EQ(core->tables().at(id).warm_start_hash, "aa");
  table.warm_start_hash = "bb";
  EXPECT_THAT(core->RegisterTable(table, At()),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("(content bb)")));
}

TEST_F(TablesTest, AWarmStartErrorIsAnEventAndAFatalOneTheEnd) {
  Start();
  Register(5);
  ServerExchangeRequest request = ServerRequest();
  request.warm_start_error = "no folder /out";
  ExchangeServer(request);
  EXPECT_TRUE(HasEvent("warm-start-error"));
  EXPECT_FALSE(HasEvent("snapshot-error"));
  EXPECT_EQ(core->state(), JobState::kRunning);
  request = ServerRequest();
  request.fatal_error = "/out is another export";
  ExchangeServer(request);
  EXPECT_EQ(core->state(), JobState::kFailed);
  EXPECT_EQ(core->reason(), "ps-0: /out is another export");
}

}  // namespace
}  // namespace muster
