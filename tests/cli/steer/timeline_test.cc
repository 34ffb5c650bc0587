#include "cli/steer/timeline.h"

#include <gmock/gmock.h>

#include "scaler/model/model_json.h"
#include "tests/support/status_matchers.h"

namespace muster::steer {
namespace {

using muster::testing::StatusIs;
using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

MasterEvent OfMaster(uint64_t sequence, uint64_t wall_us, const std::string& kind,
                     const std::string& node) {
  return {.sequence = sequence, .wall_us = wall_us, .kind = kind, .node = node};
}

std::vector<std::string> Names(Timeline* timeline) {
  std::vector<std::string> names;
  for (const TimelineEntry& entry : timeline->Take()) {
    names.push_back(entry.scaler ? fmt::format("#{}", entry.scaler->id)
                                 : std::to_string(entry.master->sequence));
  }
  return names;
}

void AddAll(Timeline* timeline) {
  timeline->Add(scaler::rest::Event{.id = 1, .wall_us = 20, .kind = "exit", .target = "ps-0"});
  timeline->Add(scaler::rest::Event{.id = 2, .wall_us = 30, .kind = "decision", .target = "ps-0"});
  timeline->Add(scaler::rest::Event{.id = 3, .wall_us = 50, .kind = "action", .target = "job"});
  timeline->Add(OfMaster(1, 10, "job-started", ""));
  timeline->Add(OfMaster(2, 30, "node-exited", "ps-0"));
  timeline->Add(OfMaster(3, 40, "node-started", "ps-0"));
}

TEST(TimelineTest, EventsOfBothInTheOrderOfTheirTimes) {
  Timeline timeline({});
  AddAll(&timeline);
  EXPECT_THAT(Names(&timeline), ElementsAre("1", "#1", "#2", "2", "3", "#3"));
  EXPECT_THAT(Names(&timeline), ElementsAre());
}

TEST(TimelineTest, OnlyWhatIsAskedFor) {
  Timeline kinds({.after_id = 0, .kinds = {"exit", "node-started"}, .node = ""});
  AddAll(&kinds);
  EXPECT_THAT(Names(&kinds), ElementsAre("#1", "3"));
  Timeline node({.after_id = 0, .kinds = {}, .node = "job"});
  AddAll(&node);
  EXPECT_THAT(Names(&node), ElementsAre("#3"));
  Timeline after({.after_id = 2, .kinds = {}, .node = ""});
  AddAll(&after);
  EXPECT_THAT(Names(&after), ElementsAre("3", "#3"));
}

TEST(TimelineTest, JsonOfBothHasOneShape) {
  const nlohmann::json master = EntryToJson({.master = MasterEvent{.sequence = 1,
                                                                   .wall_us = 1'700'000'000'123'456,
                                                                   .kind = "node-exited",
                                                                   .node = "ps-0",
                                                                   .text = "SIGKILL"},
                                             .scaler = std::nullopt});
  EXPECT_EQ(master, nlohmann::json({{"source", "master"},
                                    {"sequence", 1},
                                    {"id", nullptr},
                                    {"wall_us", 1'700'000'000'123'456},
                                    {"time", "2023-11-14T22:13:20.123Z"},
                                    {"kind", "node-exited"},
                                    {"node", "ps-0"},
                                    {"text", "SIGKILL"},
                                    {"event", nullptr}}));
  const scaler::rest::Event event{
      .id = 3, .wall_us = 50'000, .kind = "action", .target = "ps-0", .action = "drain"};
  const nlohmann::json scaler = EntryToJson({.master = std::nullopt, .scaler = event});
  EXPECT_EQ(scaler, nlohmann::json({{"source", "scaler"},
                                    {"sequence", nullptr},
                                    {"id", 3},
                                    {"wall_us", 50'000},
                                    {"time", "1970-01-01T00:00:00.050Z"},
                                    {"kind", "action"},
                                    {"node", "ps-0"},
                                    {"text", "drain"},
                                    {"event", ToJson(event)}}));
}

TEST(CheckEventKindTest, ThoseOfMasterAndScalerAndNoOthers) {
  for (const char* known : {"decision", "note", "node-exited", "worker-joined"}) {
    EXPECT_TRUE(CheckEventKind(known).ok()) << known;
  }
  const absl::Status unknown = CheckEventKind("node-exit");
  EXPECT_THAT(unknown, StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("Did you mean node-exited?"),
                                      HasSubstr("scaler's kinds are decision, outcome"),
                                      HasSubstr("stream-gone"))));
  EXPECT_THAT(CheckEventKind("bogus"),
              StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("Did you mean"))));
}

TEST(ParseEventIdTest, WithAndWithoutItsMark) {
  EXPECT_EQ(ParseEventId("12").value(), 12u);
  EXPECT_EQ(ParseEventId("#12").value(), 12u);
  for (const char* bad : {"", "#", "0", "-1", "1x", "##1", "18446744073709551616"}) {
    EXPECT_THAT(ParseEventId(bad), StatusIs(absl::StatusCode::kInvalidArgument, _)) << bad;
  }
}

}  // namespace
}  // namespace muster::steer
