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

/// Both tell the exits of ps-0: process 17, and then 18.
void AddExits(Timeline* timeline) {
  for (uint64_t i = 0; i < 2; ++i) {
    MasterEvent master = OfMaster(i + 1, 10 + 100 * i, "node-exited", "ps-0");
    master.text = fmt::format("pid {}: exit 1{}", 17 + i, i == 0 ? ": no data\nbye\n" : "");
    timeline->Add(master);
    timeline->Add(scaler::rest::Event{.id = i + 1,
                                      .wall_us = 20 + 100 * i,
                                      .kind = "exit",
                                      .target = "ps-0",
                                      .evidence = {{"pid", 17.0 + static_cast<double>(i), "", 0}},
                                      .because = "ps-0 was ended"});
  }
}

TEST(TimelineTest, AnExitIsOneEntry) {
  Timeline both({});
  AddExits(&both);
  EXPECT_THAT(Names(&both), ElementsAre("1", "#1", "2", "#2"));
  Timeline::Filter filter{.pair_exits = true};
  Timeline timeline(filter);
  AddExits(&timeline);
  const std::vector<TimelineEntry> entries = timeline.Take();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_THAT(EntryText(entries[0]),
              AllOf(HasSubstr("#1 exit ps-0  ps-0 was ended; pid 17\n    no data\n    bye\n"),
                    Not(HasSubstr("exit 1"))));
  EXPECT_THAT(EntryText(entries[1]), HasSubstr("#2 exit ps-0  ps-0 was ended; pid 18\n"));
  for (const char* kind : {"exit", "node-exited"}) {
    filter.kinds = {kind};
    Timeline one(filter);
    AddExits(&one);
    EXPECT_THAT(Names(&one), ElementsAre("#1", "#2")) << kind;
  }
  Timeline after({.after_id = 1, .pair_exits = true});
  AddExits(&after);
  EXPECT_THAT(Names(&after), ElementsAre("#2")) << "the master's words on #1 are not news";
}

TEST(TimelineTest, AnExitByADisruptionIsOneEntryToo) {
  Timeline timeline({.pair_exits = true});
  MasterEvent master = OfMaster(1, 10, "node-preempted", "ps-0");
  master.text = "pid 17: SIGTERM";
  timeline.Add(master);
  timeline.Add(scaler::rest::Event{.id = 1,
                                   .wall_us = 20,
                                   .kind = "exit",
                                   .target = "ps-0",
                                   .evidence = {{"pid", 17.0, "", 0}},
                                   .because = "ps-0 was taken away"});
  EXPECT_THAT(Names(&timeline), ElementsAre("#1"));
}

TEST(TimelineTest, AnExitWithoutAPidIsKnownByItsTime) {
  for (const bool near : {true, false}) {
    Timeline timeline({.pair_exits = true});
    MasterEvent master = OfMaster(1, 40'000'000, "node-exited", "scaler");
    master.text = "pid 9: SIGKILL";
    timeline.Add(master);
    timeline.Add(scaler::rest::Event{
        .id = 1, .wall_us = near ? 70'000'000u : 70'000'001u, .kind = "exit", .target = "scaler"});
    EXPECT_EQ(timeline.Take().size(), near ? 1u : 2u);
  }
}

TEST(TimelineTest, AnExitThatOnlyOneHasToldWaitsOnceForTheOther) {
  Timeline timeline({.pair_exits = true});
  const auto exit = [&] {
    MasterEvent master = OfMaster(1, 10, "node-exited", "ps-0");
    master.text = "pid 17: exit 1";
    timeline.Add(master);
  };
  exit();
  EXPECT_TRUE(timeline.Take(/*more=*/true).empty());
  timeline.Add(scaler::rest::Event{
      .id = 1, .wall_us = 20, .kind = "exit", .target = "ps-0", .evidence = {{"pid", 17, "", 0}}});
  EXPECT_THAT(Names(&timeline), ElementsAre("#1"));
  exit();
  EXPECT_TRUE(timeline.Take(/*more=*/true).empty());
  EXPECT_EQ(timeline.Take(/*more=*/true).size(), 1u) << "no scaler lived";
  exit();
  EXPECT_EQ(timeline.Take().size(), 1u);
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
