#include <gmock/gmock.h>

#include "proto/fields/encode.h"
#include "proto/fields/generated.h"
#include "tests/support/status_matchers.h"
#include "tests/worker_sdk/control/raw_master.h"
#include "worker_sdk/control/control_client.h"

/// What a master may do wrong on its connection.
namespace muster::sdk {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using std::chrono::milliseconds;
using testing::Answer;
using testing::Begin;
using testing::Data;
using testing::GoAway;
using ::testing::HasSubstr;
using testing::Headers;
using testing::kEndStream;
using testing::Message;
using testing::RawMaster;
using testing::Reset;
using testing::Trailers;
using Code = absl::StatusCode;

constexpr milliseconds kPatience{20'000};

std::string Good(uint32_t stream) {
  return Answer(stream, fields::Encode(WorkerExchangeReply{}));
}
std::string Numbered(uint32_t stream, uint64_t incarnation) {
  WorkerExchangeReply reply;
  reply.master_incarnation = MasterIncarnation(incarnation);
  return Answer(stream, fields::Encode(reply));
}
std::string Nothing(uint32_t) {
  return "";
}
absl::Status Exchange(ControlClient* client, milliseconds timeout = kPatience) {
  return client->Exchange({}, timeout).status();
}

TEST(LyingMasterTest, AnswersThatAreNoneAreErrors) {
  const struct {
    std::string what;
    std::function<std::string(uint32_t stream)> bytes;
    Code code;
    std::string message;
  } cases[] = {
      {"an error after the message",
       [](uint32_t s) { return Begin(s) + Data(s, Message("", 0)) + Trailers(s, "9"); },
       Code::kFailedPrecondition, "as told"},
      {"no status", [](uint32_t s) { return Begin(s) + Data(s, Message("", 0), kEndStream); },
       Code::kUnavailable, "ended the call"},
      {"a status that is no number",
       [](uint32_t s) { return Begin(s) + Data(s, Message("", 0)) + Trailers(s, "fine"); },
       Code::kUnknown, "as told"},
      {"a status beyond the last",
       [](uint32_t s) { return Begin(s) + Data(s, Message("", 0)) + Trailers(s, "17"); },
       Code::kUnknown, "as told"},
      {"another kind of server",
       [](uint32_t s) { return Headers(s, {{":status", "502"}}) + Data(s, "<html>", kEndStream); },
       Code::kUnavailable, "HTTP status 502"},
      {"no message", [](uint32_t s) { return Begin(s) + Trailers(s, "0"); }, Code::kInternal,
       "without a plain message"},
      {"half a prefix",
       [](uint32_t s) { return Begin(s) + Data(s, Message("", 0).substr(1)) + Trailers(s, "0"); },
       Code::kInternal, "without a plain message"},
      {"a compressed message",
       [](uint32_t s) { return Begin(s) + Data(s, Message("", 0, '\1')) + Trailers(s, "0"); },
       Code::kInternal, "without a plain message"},
      {"half a message",
       [](uint32_t s) { return Begin(s) + Data(s, Message("abc", 4)) + Trailers(s, "0"); },
       Code::kInternal, "3 bytes instead of 4"},
      {"two messages",
       [](uint32_t s) {
         return Begin(s) + Data(s, Message("", 0) + Message("", 0)) + Trailers(s, "0");
       },
       Code::kInternal, "5 bytes instead of 0"},
      {"fields that cannot be decoded", [](uint32_t s) { return Answer(s, "\xff\xff"); },
       Code::kInvalidArgument, "malformed WorkerExchangeReply"},
      {"a reset", [](uint32_t s) { return Reset(s, 2); }, Code::kUnavailable, "ended the call"},
      {"a frame for a call that nobody has made", [](uint32_t s) { return Good(s + 2); },
       Code::kUnavailable, "the master at "},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    RawMaster master({{c.bytes}, {Good}, {Good}});
    ControlClient client(master.address(), "w", {});
    EXPECT_THAT(Exchange(&client), StatusIs(c.code, HasSubstr(c.message)));
    EXPECT_THAT(Exchange(&client), IsOk()) << "the next call is another one";
  }
}

TEST(LyingMasterTest, AnAnswerThatComesTwiceIsTakenOnce) {
  RawMaster master({{[](uint32_t s) { return Numbered(s, 1); }},
                    {[](uint32_t s) { return Numbered(s - 2, 1) + Numbered(s, 2); }}});
  ControlClient client(master.address(), "w", {});
  MUSTER_ASSERT_OK_AND_ASSIGN(WorkerExchangeReply reply, client.Exchange({}, kPatience));
  EXPECT_EQ(reply.master_incarnation, MasterIncarnation(1));
  const absl::StatusOr<WorkerExchangeReply> second = client.Exchange({}, kPatience);
  if (second.ok()) {
    EXPECT_EQ(second->master_incarnation, MasterIncarnation(2));
  } else {
    EXPECT_THAT(second, StatusIs(Code::kUnavailable, ::testing::_));
  }
}

TEST(LyingMasterTest, SilenceEndsAtTheDeadlineAndALateAnswerIsNotTaken) {
  RawMaster master({{Nothing}, {[](uint32_t s) { return Numbered(s, 2); }}});
  ControlClient client(master.address(), "w", {});
  EXPECT_THAT(Exchange(&client, milliseconds(50)),
              StatusIs(Code::kDeadlineExceeded, HasSubstr("WorkerService/Exchange in time")));
  MUSTER_ASSERT_OK_AND_ASSIGN(WorkerExchangeReply reply, client.Exchange({}, kPatience));
  EXPECT_EQ(reply.master_incarnation, MasterIncarnation(2));
  EXPECT_EQ(master.connections(), 2) << "the state of the first one is not known";
}

TEST(LyingMasterTest, HalfAnAnswerEndsAtTheDeadline) {
  RawMaster master({{[](uint32_t s) { return Good(s).substr(0, 60); }}, {Good}});
  ControlClient client(master.address(), "w", {});
  EXPECT_THAT(Exchange(&client, milliseconds(50)), StatusIs(Code::kDeadlineExceeded, ::testing::_));
  EXPECT_THAT(Exchange(&client), IsOk());
}

TEST(LyingMasterTest, AKeptConnectionThatEndsBeforeAnyAnswerIsReplacedOnce) {
  RawMaster master({{Good}, {Nothing, true}, {Good}, {Nothing, true}, {Nothing, true}, {Good}});
  ControlClient client(master.address(), "w", {});
  EXPECT_THAT(Exchange(&client), IsOk());
  EXPECT_THAT(Exchange(&client), IsOk());
  EXPECT_EQ(master.requests(), 3);
  EXPECT_THAT(Exchange(&client), StatusIs(Code::kUnavailable, HasSubstr("closed the connection")));
  EXPECT_EQ(master.requests(), 5) << "once more, not for ever";
  EXPECT_THAT(Exchange(&client), IsOk());
}

TEST(LyingMasterTest, ANewConnectionThatEndsIsAnErrorAtOnce) {
  RawMaster master({{Nothing, true}, {Good}});
  ControlClient client(master.address(), "w", {});
  EXPECT_THAT(Exchange(&client), StatusIs(Code::kUnavailable, HasSubstr("closed the connection")));
  EXPECT_EQ(master.requests(), 1);
  EXPECT_THAT(Exchange(&client), IsOk());
}

TEST(LyingMasterTest, AConnectionThatEndsWithinTheAnswerIsAnErrorAtOnce) {
  RawMaster master({{Good}, {Begin, true}, {Good}});
  ControlClient client(master.address(), "w", {});
  EXPECT_THAT(Exchange(&client), IsOk());
  EXPECT_THAT(Exchange(&client), StatusIs(Code::kUnavailable, HasSubstr("closed the connection")));
  EXPECT_EQ(master.requests(), 2) << "it may have been answered";
  EXPECT_THAT(Exchange(&client), IsOk());
}

TEST(LyingMasterTest, ACallThatIsRefusedBecauseTheMasterEndsIsRepeatedElsewhere) {
  RawMaster master({{Good},
                    {[](uint32_t s) { return GoAway(s - 2); }},
                    {Good},
                    {[](uint32_t s) { return Good(s) + GoAway(s); }},
                    {Good}});
  ControlClient client(master.address(), "w", {});
  EXPECT_THAT(Exchange(&client), IsOk());
  EXPECT_THAT(Exchange(&client), IsOk()) << "refused in the middle of the call";
  EXPECT_EQ(master.connections(), 2);
  EXPECT_THAT(Exchange(&client), IsOk());
  EXPECT_THAT(Exchange(&client), IsOk()) << "told between two calls";
  EXPECT_EQ(master.connections(), 3);
  EXPECT_EQ(master.requests(), 5);
}

TEST(LyingMasterTest, AnAnswerBeforeTheRequestIsWrittenIsTaken) {
  RawMaster master({{[](uint32_t s) { return Begin(s) + Trailers(s, "8") + Reset(s, 0); },
                     /*close=*/false, /*early=*/true},
                    {Good}});
  ControlClient client(master.address(), "w", {});
  WorkerExchangeRequest request;
  request.held.resize(100'000);  // more than the window of a stream
  for (HeldLease& held : request.held) held.token = LeaseToken::FromValue(~0ull);
  EXPECT_THAT(client.Exchange(request, kPatience).status(),
              StatusIs(Code::kResourceExhausted, HasSubstr("as told")));
}

}  // namespace
}  // namespace muster::sdk
