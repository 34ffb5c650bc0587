#include "scaler/rest/event_stream.h"

#include <gmock/gmock.h>

namespace muster::scaler::rest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr TimePoint kOpenedAt{std::chrono::seconds(100)};

std::vector<Event> EventsFrom(uint64_t first, uint64_t count) {
  std::vector<Event> events(count);
  for (uint64_t i = 0; i < count; ++i) events[i].id = first + i;
  return events;
}

StreamId OpenAt(EventStreams* streams, StreamRequest request) {
  const auto opened = streams->Open(request, kOpenedAt);
  EXPECT_TRUE(opened);
  streams->Written(opened->id, kOpenedAt);
  return opened->id;
}

TEST(EventStreamTest, TheFormatHasIdNameAndData) {
  EXPECT_EQ(FormatServerSentEvent("event", 17, "{}"), "id: 17\nevent: event\ndata: {}\n\n");
  EXPECT_EQ(FormatServerSentEvent("status", std::nullopt, "{}"), "event: status\ndata: {}\n\n");
}

TEST(EventStreamTest, EveryStreamGetsWhatFollowsItsOwnPosition) {
  EventStreams streams({});
  const StreamId early = OpenAt(&streams, {.status = false, .after = 3});
  const StreamId late = OpenAt(&streams, {.status = false, .after = 5});
  EXPECT_THAT(streams.Positions(), ElementsAre(3, 5));
  const auto writes =
      streams.Take({.events = {{3, EventsFrom(4, 3)}, {5, EventsFrom(6, 1)}}}, kOpenedAt);
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[0].id, early);
  EXPECT_THAT(writes[0].text, HasSubstr("id: 4\n"));
  EXPECT_THAT(writes[0].text, HasSubstr("id: 6\n"));
  EXPECT_EQ(writes[1].id, late);
  EXPECT_THAT(writes[1].text, Not(HasSubstr("id: 5\n")));
  // While a write is under way nothing is asked for; afterwards both are at the same position.
  EXPECT_THAT(streams.Positions(), IsEmpty());
  streams.Written(early, kOpenedAt);
  streams.Written(late, kOpenedAt);
  EXPECT_THAT(streams.Positions(), ElementsAre(6));
}

TEST(EventStreamTest, ABacklogComesInBoundedWritesOneAfterTheOther) {
  EventStreams streams({.events_per_write = 2});
  const StreamId id = OpenAt(&streams, {.status = false});
  auto writes = streams.Take({.events = {{0, EventsFrom(1, 5)}}}, kOpenedAt);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_THAT(writes[0].text, Not(HasSubstr("id: 3\n")));
  EXPECT_TRUE(streams.Written(id, kOpenedAt));
  EXPECT_THAT(streams.Positions(), ElementsAre(2));
  writes = streams.Take({.events = {{2, EventsFrom(3, 1)}}}, kOpenedAt);
  EXPECT_FALSE(streams.Written(id, kOpenedAt));
}

TEST(EventStreamTest, TopicsAreSeparateAndAStatusThatCannotBeTakenIsLeftOut) {
  EventStreams streams({});
  const StreamId events = OpenAt(&streams, {.events = true, .status = false});
  const StreamId status = OpenAt(&streams, {.events = false, .status = true, .after = 9});
  EXPECT_THAT(streams.Positions(), ElementsAre(0));
  EXPECT_TRUE(streams.WantsStatus());
  auto writes = streams.Take({.events = {{0, {}}}, .status = "{\"a\":1}"}, kOpenedAt);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].id, status);
  EXPECT_EQ(writes[0].text, "event: status\ndata: {\"a\":1}\n\n");
  EXPECT_FALSE(streams.WantsStatus());
  EXPECT_THAT(streams.Take({.events = {}, .status = "{\"a\":2}"}, kOpenedAt), IsEmpty());
  streams.Written(status, kOpenedAt);
  streams.Close(events);
  writes = streams.Take({.events = {}, .status = "{\"a\":3}"}, kOpenedAt);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_THAT(writes[0].text, Not(HasSubstr("\"a\":2")));
}

TEST(EventStreamTest, SilenceIsBrokenByAHeartbeat) {
  EventStreams streams({.heartbeat = std::chrono::seconds(10)});
  OpenAt(&streams, {.status = false});
  EXPECT_THAT(streams.Take({}, kOpenedAt + std::chrono::seconds(9)), IsEmpty());
  const auto writes = streams.Take({}, kOpenedAt + std::chrono::seconds(10));
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].text, ": heartbeat\n\n");
}

TEST(EventStreamTest, WhoDoesNotReadIsNamedAndMoreThanTheLimitAreRefused) {
  EventStreams streams({.streams_max = 2, .stall_max = std::chrono::seconds(10)});
  const StreamId reads = OpenAt(&streams, {});
  const auto stuck = streams.Open({}, kOpenedAt);
  ASSERT_TRUE(stuck);
  EXPECT_FALSE(streams.Open({}, kOpenedAt));
  EXPECT_THAT(streams.Stalled(kOpenedAt + std::chrono::seconds(9)), IsEmpty());
  EXPECT_THAT(streams.Stalled(kOpenedAt + std::chrono::seconds(10)), ElementsAre(stuck->id));
  streams.Close(stuck->id);
  EXPECT_FALSE(streams.Written(stuck->id, kOpenedAt));
  EXPECT_TRUE(streams.Open({}, kOpenedAt));
  EXPECT_NE(reads, stuck->id);
}

}  // namespace
}  // namespace muster::scaler::rest
