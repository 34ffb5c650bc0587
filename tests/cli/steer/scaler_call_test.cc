#include "cli/steer/scaler_call.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <thread>

#include "scaler/decision/log/event_log.h"
#include "tests/cli/steer/steer_fixture.h"
#include "tests/support/fake_clock.h"

namespace muster::steer {
namespace {

using muster::testing::StatusIs;
using scaler::rest::Event;
using scaler::rest::Explanation;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ScalerCallTest : public testing::SteerFixture {
 protected:
  std::optional<Event> Try() {
    absl::StatusOr<std::optional<Event>> event = std::nullopt;
    Call([&] {
      event = TryOrder(Query(), {scaler::DrainJob{}, ""});
      return 0;
    });
    EXPECT_THAT(event, muster::testing::IsOk());
    return event.value_or(std::nullopt);
  }
};

TEST_F(ScalerCallTest, WhatWasNotDoneIsForTheMaster) {
  EXPECT_EQ(Try(), std::nullopt);
  EXPECT_EQ(err_, "") << "there never was a scaler that serves";
  WriteEndpoint("127.0.0.1:1");
  StartScaler();
  EXPECT_NE(Try(), std::nullopt);
  ASSERT_EQ(::chmod(state_.token().c_str(), 0604), 0);
  EXPECT_EQ(Try(), std::nullopt);
  EXPECT_THAT(err_, HasSubstr("mode 0604"));
  ASSERT_EQ(::chmod(state_.token().c_str(), 0600), 0);
  StopScaler();
  EXPECT_EQ(Try(), std::nullopt);
  EXPECT_THAT(err_, HasSubstr("nothing answers"));
}

TEST_F(ScalerCallTest, OfAJobThatDoesNotRunOnlyTheMastersAbsenceIsSaid) {
  StartScaler();
  StopScaler();
  EXPECT_EQ(Try(), std::nullopt);
  EXPECT_EQ(err_, "") << "the address of a scaler that was killed is left";
  ASSERT_THAT(state_.WriteRestAddress(
                  {.port = port_, .pid = ::getpid(), .certificates = state_.certificates()}),
              muster::testing::IsOk());
  EXPECT_EQ(Try(), std::nullopt);
  EXPECT_EQ(err_, "") << "nor can its certificates be found";
}

TEST_F(ScalerCallTest, WhatWasRefusedIsNot) {
  StartScaler();
  EXPECT_THAT(TryOrder(Query(), {scaler::RestartNode{.node = "ps-9"}, ""}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("ps-9")));
}

TEST_F(ScalerCallTest, WhatMayHaveBeenDoneIsNotDoneAgain) {
  StartScaler();
  StopScaler();
  // Whoever takes the order and dies.
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&at), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size), 0);
  std::thread scaler([listener] {
    const int peer = ::accept(listener, nullptr, nullptr);
    char bytes[4096];
    EXPECT_GT(::recv(peer, bytes, sizeof(bytes), 0), 0);
    ::close(peer);
  });
  ASSERT_THAT(state_.WriteRestAddress({.port = ntohs(at.sin_port), .pid = ::getpid()}),
              muster::testing::IsOk());
  EXPECT_THAT(
      TryOrder(Query(), {scaler::CancelJob{}, ""}),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("may have been carried out")));
  scaler.join();
  ::close(listener);
}

TEST_F(ScalerCallTest, AnOutcomeIsFoundAfterTheJobToo) {
  EXPECT_THAT(ExplainNow(Query().target, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("the job ended before")));
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto log, scaler::EventLog::Open(state_.scaler(), {}, &clock_));
  log->Append({.kind = "action", .target = "ps-0"});
  EXPECT_THAT(ExplainNow(Query().target, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("the outcome of #1")));
  log->Append({.kind = "outcome", .cause_id = 1, .verdict = "unknown"});
  EXPECT_THAT(ExplainNow(Query().target, 1), muster::testing::IsOk());
  WriteEndpoint("127.0.0.1:1");
  EXPECT_THAT(ExplainNow(Query().target, 1), StatusIs(absl::StatusCode::kUnavailable, _))
      << "the scaler is being started again";
}

class AwaitOutcomeTest : public ::testing::Test {
 protected:
  muster::testing::FakeClock clock_;
  std::vector<std::string> said_;
  Patience patience_{{.limit = std::chrono::seconds(10),
                      .pause = [this] { clock_.Advance(std::chrono::seconds(1)); },
                      .say = [this](std::string_view words) { said_.emplace_back(words); }},
                     &clock_};
};

TEST_F(AwaitOutcomeTest, OutlivesTheScaler) {
  int asked = 0;
  const absl::StatusOr<Event> outcome = AwaitOutcome(
      [&]() -> absl::StatusOr<Explanation> {
        Explanation explanation{.event = {.id = 7}};
        switch (++asked) {
          case 3:
            return absl::UnavailableError("away");
          case 4:
            return absl::DeadlineExceededError("slow");
          case 5:
            explanation.effects = {{.id = 8, .kind = "exit"}, {.id = 9, .kind = "outcome"}};
            break;
          default:
            break;
        }
        return explanation;
      },
      7, &patience_);
  MUSTER_ASSERT_OK_AND_ASSIGN(const Event found, outcome);
  EXPECT_EQ(found.id, 9u);
  EXPECT_THAT(said_, ElementsAre("waiting for the outcome of #7, the scaler does not answer, 2 s"));
}

TEST_F(AwaitOutcomeTest, EndsWithTheJobAndWithPatience) {
  EXPECT_THAT(
      AwaitOutcome([]() -> absl::StatusOr<Explanation> { return absl::NotFoundError("no job"); }, 7,
                   &patience_),
      StatusIs(absl::StatusCode::kNotFound, "no job"));
  EXPECT_THAT(
      AwaitOutcome([]() -> absl::StatusOr<Explanation> { return Explanation{}; }, 7, &patience_),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("muster explain 7")));
}

}  // namespace
}  // namespace muster::steer
