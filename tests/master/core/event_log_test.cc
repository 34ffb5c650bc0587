#include "master/core/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<uint64_t> SequencesOf(const std::vector<EventRecord>& events) {
  std::vector<uint64_t> sequences;
  for (const EventRecord& event : events) sequences.push_back(event.sequence);
  return sequences;
}

/// The journal's contents after `mutations`.
void ApplyAll(const std::vector<Mutation>& mutations, DurableState* state) {
  for (const Mutation& mutation : mutations) Apply(mutation, state);
}

TEST(EventLogTest, EventsAreNumberedFromOneAndReadInPages) {
  EventLog log({});
  EXPECT_EQ(log.newest(), 0u);
  EXPECT_THAT(log.After(0, 9), IsEmpty());
  for (int i = 0; i < 4; ++i) log.Add(std::chrono::seconds(i), "restored", "node", "text");
  EXPECT_EQ(log.newest(), 4u);
  EXPECT_THAT(SequencesOf(log.After(0, 9)), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(SequencesOf(log.After(1, 2)), ElementsAre(2, 3));
  EXPECT_THAT(log.After(4, 9), IsEmpty());
  EXPECT_THAT(log.After(0, 0), IsEmpty());
  const EventRecord event = log.After(1, 1).at(0);
  EXPECT_EQ(event.wall, std::chrono::seconds(1));
  EXPECT_EQ(event.kind, "restored");
  EXPECT_EQ(event.node, "node");
  EXPECT_EQ(event.text, "text");
}

TEST(EventLogTest, TheJournalGetsEveryEventOnceAndGoesOnFromThere) {
  EventLog log({});
  log.Add({}, "node-lost", "", "");
  log.Add({}, "node-back", "", "");
  std::vector<Mutation> mutations;
  log.Collect(&mutations);
  EXPECT_EQ(mutations.size(), 2u);
  log.Collect(&mutations);
  EXPECT_EQ(mutations.size(), 2u) << "nothing is new";
  log.Add({}, "restored", "", "");
  log.Collect(&mutations);
  EXPECT_EQ(mutations.size(), 3u);
  DurableState state;
  ApplyAll(mutations, &state);

  EventLog again(state.events);
  mutations.clear();
  again.Collect(&mutations);
  EXPECT_THAT(mutations, IsEmpty()) << "the journal has them";
  again.Add({}, "job-ended", "", "");
  EXPECT_THAT(SequencesOf(again.After(0, 9)), ElementsAre(1, 2, 3, 4));
}

TEST(EventLogTest, TheOldestGoWhenThereAreTooMany) {
  EventLog log({});
  DurableState state;
  const auto collect = [&] {
    std::vector<Mutation> mutations;
    log.Collect(&mutations);
    ApplyAll(mutations, &state);
    EXPECT_EQ(state.events.size(), log.events().size());
  };
  for (size_t i = 0; i < EventLog::kEventsMax; ++i) log.Add({}, "restored", "", "");
  collect();
  EXPECT_EQ(log.events().begin()->first, 1u) << "as many as there may be";
  log.Add({}, "restored", "", "");
  log.Add({}, "restored", "", "");
  collect();
  EXPECT_EQ(log.events().size(), EventLog::kEventsMax);
  EXPECT_EQ(log.events().begin()->first, 3u);
  EXPECT_EQ(state.events.begin()->first, 3u);
}

TEST(EventLogTest, TextsAreBoundedAndValid) {
  EventLog log({});
  log.Add({}, "restored", "", std::string(EventLog::kTextBytesMax, 'x'));
  log.Add({}, "restored", "", std::string(EventLog::kTextBytesMax + 1, 'x'));
  EXPECT_EQ(log.After(0, 1)[0].text.size(), EventLog::kTextBytesMax);
  EXPECT_LE(log.After(1, 1)[0].text.size(), EventLog::kTextBytesMax);
  log.Add({}, "restored", "", "\xff!");
  EXPECT_EQ(log.After(2, 1)[0].text.find('\xff'), std::string::npos);
}

}  // namespace
}  // namespace muster
