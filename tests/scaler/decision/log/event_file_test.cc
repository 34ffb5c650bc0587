#include "scaler/decision/log/event_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/random.h"
#include "scaler/model/model_json.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

/// Every field differs from what an empty event has.
rest::Event FullEvent(uint64_t id) {
  return {.id = id,
          .wall_us = 1'800'000'000'000'000,
          .kind = "outcome",
          .policy = "out-of-memory",
          .target = "ps-0",
          .action = "restart",
          .before = {{"cpus", 0.5}, {"memory_bytes", 268435456}},
          .after = {{"memory_bytes", 402653184}},
          .evidence = {{"memory peak", 268435456, "bytes", 30}, {"rate", 12.25, "records/s", 0}},
          .because = "a \"quoted\" reason\nof two lines, and ü",
          .dry_run = true,
          .cause_id = 7,
          .verdict = "helped"};
}

rest::Event Plain(uint64_t id) {
  return {.id = id, .because = fmt::format("event {}", id)};
}

std::string LinesOf(const std::vector<uint64_t>& ids) {
  std::string lines;
  for (const uint64_t id : ids) lines += EventLine(Plain(id));
  return lines;
}

std::vector<std::string> Texts(const EventFileContents& contents) {
  std::vector<std::string> texts;
  for (const rest::Event& event : contents.events) {
    texts.push_back(fmt::format("{}: {}", event.id, event.because));
  }
  return texts;
}

TEST(EventFileTest, ALineHasEveryFieldOfAnEvent) {
  const rest::Event event = FullEvent(9);
  const nlohmann::json json = ToJson(event);
  const nlohmann::json empty = ToJson(rest::Event{});
  for (const auto& [name, value] : json.items()) EXPECT_NE(value, empty.at(name)) << name;
  MUSTER_ASSERT_OK_AND_ASSIGN(const rest::Event read, ParseEventLine(EventLine(event)));
  EXPECT_EQ(ToJson(read), json);
}

TEST(EventFileTest, ActionsOfVersion01HaveTheirNamesOfToday) {
  for (const auto& [before, now] : {std::pair("relaunch", "restart"),
                                    {"set-limits", "resize"},
                                    {"set-workers", "scale"},
                                    {"drain", "drain"}}) {
    rest::Event event{.id = 1};
    event.action = before;
    MUSTER_ASSERT_OK_AND_ASSIGN(const rest::Event read, ParseEventLine(EventLine(event)));
    EXPECT_EQ(read.action, now);
  }
}

TEST(EventFileTest, ANumberThatIsNotDefinedStaysSo) {
  rest::Event event = Plain(1);
  event.before["cpus"] = std::numeric_limits<double>::infinity();
  event.evidence = {{"rate", std::nan(""), "records/s", 10}};
  MUSTER_ASSERT_OK_AND_ASSIGN(const rest::Event read, ParseEventLine(EventLine(event)));
  EXPECT_TRUE(std::isnan(read.before.at("cpus")));
  EXPECT_TRUE(std::isnan(read.evidence.at(0).value));
}

TEST(EventFileTest, WhatIsNoEventIsRefused) {
  std::string wrong = EventLine(Plain(1));
  wrong.replace(wrong.find("false"), 5, "\"no\"");
  for (const std::string& line :
       {std::string(), std::string("{}"), std::string("[1]"), std::string("{\"id\":1"), wrong,
        EventLine(Plain(0)), std::string(16, '\0')}) {
    EXPECT_THAT(ParseEventLine(line), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("not an")))
        << line;
  }
}

TEST(EventFileTest, AnEventIsCutToWhatCanBeKept) {
  rest::Event event = FullEvent(1);
  event.because = std::string(100'000, 'x') + "\xff";
  EXPECT_THAT(EventLine(BoundedEvent(event)), SizeIs(Le(kEventBytesMax + 1)));
  EXPECT_THAT(BoundedEvent(event).evidence, SizeIs(2)) << "words go before figures";

  event.because = "bad \xff byte";
  EXPECT_EQ(BoundedEvent(event).because, "bad ? byte");

  // A control character is six bytes of JSON.
  const std::string bad(1000, '\x01');
  event = {
      .kind = bad, .policy = bad, .target = bad, .action = bad, .because = bad, .verdict = bad};
  for (int i = 0; i < 100; ++i) {
    event.before[bad + std::to_string(i)] = event.after[std::to_string(i) + bad] = -1.0 / 3;
    event.evidence.push_back({bad, -1.0 / 3, bad, -1.0 / 3});
  }
  EXPECT_THAT(EventLine(BoundedEvent(event)), SizeIs(Le(kEventBytesMax + 1)));
}

TEST(EventFileTest, TheOldFileIsReadFirst) {
  TempDir folder;
  ASSERT_THAT(WriteFileAtomically(OldEventFile(folder.path()), LinesOf({3, 4})), IsOk());
  ASSERT_THAT(WriteFileAtomically(EventFile(folder.path()), LinesOf({5, 6})), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const EventFileContents all, ReadEventFiles(folder.path(), 100));
  EXPECT_THAT(Texts(all), ElementsAre("3: event 3", "4: event 4", "5: event 5", "6: event 6"));
  EXPECT_THAT(all.damage, IsEmpty());
  EXPECT_EQ(all.bytes, LinesOf({5, 6}).size());
  MUSTER_ASSERT_OK_AND_ASSIGN(const EventFileContents newest, ReadEventFiles(folder.path(), 3));
  EXPECT_THAT(Texts(newest), ElementsAre("4: event 4", "5: event 5", "6: event 6"));
}

TEST(EventFileTest, AnIdThatBecameLargerHidesNothingBehindIt) {
  TempDir folder;
  ASSERT_THAT(WriteFileAtomically(OldEventFile(folder.path()), LinesOf({3, 94})), IsOk());
  ASSERT_THAT(WriteFileAtomically(EventFile(folder.path()), LinesOf({5, 6})), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const EventFileContents all, ReadEventFiles(folder.path(), 100));
  EXPECT_THAT(Texts(all),
              ElementsAre("3: event 3", HasSubstr("line 2 of"), "5: event 5", "6: event 6"));
}

TEST(EventFileTest, NoFileIsNoEvents) {
  TempDir folder;
  MUSTER_ASSERT_OK_AND_ASSIGN(const EventFileContents contents, ReadEventFiles(folder.path(), 9));
  EXPECT_THAT(contents.events, IsEmpty());
  ASSERT_THAT(MakeDirectory(EventFile(folder.path())), IsOk());
  EXPECT_FALSE(ReadEventFiles(folder.path(), 9).ok());
}

struct Damage {
  std::string name;
  std::string contents;
  /// The ids, those that cannot be read negative.
  std::vector<int> ids;
  size_t told = 0;
};

class EventDamageTest : public ::testing::TestWithParam<Damage> {};

TEST_P(EventDamageTest, IsToldAndSurvived) {
  TempDir folder;
  ASSERT_THAT(WriteFileAtomically(EventFile(folder.path()), GetParam().contents), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const EventFileContents read, ReadEventFiles(folder.path(), 5));
  std::vector<int> ids;
  for (const rest::Event& event : read.events) {
    const bool readable = event.because == fmt::format("event {}", event.id);
    if (!readable) {
      EXPECT_THAT(event.because, AllOf(HasSubstr("cannot be read"), HasSubstr("events.jsonl")));
    }
    ids.push_back(static_cast<int>(event.id) * (readable ? 1 : -1));
  }
  EXPECT_EQ(ids, GetParam().ids);
  EXPECT_THAT(read.damage, SizeIs(GetParam().told));
}

INSTANTIATE_TEST_SUITE_P(
    All, EventDamageTest,
    ::testing::Values(Damage{"TornTail", LinesOf({1, 2}) + "{\"action\":\"re", {1, 2}},
                      Damage{"NothingButATornLine", "{\"acti", {}},
                      Damage{
                          "InTheMiddle", LinesOf({1}) + "\xff\xff\n" + LinesOf({3}), {1, -2, 3}, 1},
                      Damage{"AtTheFront", "broken\nbroken\n" + LinesOf({8, 9}), {-6, -7, 8, 9}, 2},
                      Damage{"AtTheEnd", LinesOf({1, 2}) + "broken\n\n", {1, 2, -3, -4}, 2},
                      Damage{"Everything", "broken\n", {-1}, 1},
                      Damage{"LostLines", LinesOf({1, 4}), {1, -2, -3, 4}, 1},
                      Damage{"AnIdThatBecameLarger", LinesOf({1, 92, 3, 4}), {1, -2, 3, 4}, 1},
                      Damage{"AnIdThatBecameSmaller", LinesOf({5, 6, 2, 8}), {5, 6, -7, 8}, 1},
                      Damage{"ALineTwice", LinesOf({1, 2, 2, 3}), {1, 2, 3}, 1},
                      Damage{"MoreThanIsKept",
                             LinesOf({1, 1'000'000}),
                             {-999'996, -999'997, -999'998, -999'999, 1'000'000},
                             1}),
    [](const auto& param) { return param.param.name; });

TEST(EventFileTest, WhateverHappensToBytesEventsComeInOrder) {
  TempDir folder;
  const std::string whole = LinesOf({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  uint64_t readable = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    std::string bytes = whole;
    for (uint64_t i = rng.Below(4); i > 0; --i) {
      bytes[rng.Below(bytes.size())] ^= static_cast<char>(1 << rng.Below(8));
    }
    if (rng.Below(3) == 0) bytes.erase(rng.Below(bytes.size()), rng.Below(300));
    if (rng.Below(3) == 0) bytes.insert(rng.Below(bytes.size()), rng.Below(300), '\0');
    const bool old = rng.Below(2) == 0;
    ASSERT_THAT(WriteFileAtomically(EventFile(folder.path()), old ? LinesOf({13, 14}) : bytes),
                IsOk());
    ASSERT_THAT(WriteFileAtomically(OldEventFile(folder.path()), old ? bytes : ""), IsOk());
    MUSTER_ASSERT_OK_AND_ASSIGN(const EventFileContents read, ReadEventFiles(folder.path(), 50));
    for (size_t i = 0; i + 1 < read.events.size(); ++i) {
      ASSERT_EQ(read.events[i].id + 1, read.events[i + 1].id) << "seed " << seed;
    }
    for (const rest::Event& event : read.events) {
      readable += event.because == fmt::format("event {}", event.id) ? 1 : 0;
    }
    if (old) {
      EXPECT_EQ(read.events.back().id, 14u) << "seed " << seed;
    }
  }
  EXPECT_GT(readable, 100u * 8) << "what is damaged is little";
}

}  // namespace
}  // namespace muster::scaler
