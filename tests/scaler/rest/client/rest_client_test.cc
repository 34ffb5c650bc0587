#include "scaler/rest/client/rest_client.h"

#include <gmock/gmock.h>

#include <optional>

#include "scaler/model/model_json.h"
#include "tests/scaler/rest/server/rest_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster::scaler::rest {
namespace {

using muster::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;

class RestClientTest : public testing::RestFixture {
 protected:
  void SetUp() override {
    StartServer();
    client_.emplace(RestClientOptions{
        .port = port_, .token = testing::kToken, .deadline = std::chrono::seconds(60)});
  }

  std::optional<RestClient> client_;
};

TEST_F(RestClientTest, QuestionsAreAnsweredWithWhatTheJobSays) {
  job_.AddEvent();
  job_.AddEvent();
  MUSTER_ASSERT_OK_AND_ASSIGN(const Job job, client_->GetJob());
  EXPECT_EQ(ToJson(job), ToJson(job_.GetJob().value()));
  MUSTER_ASSERT_OK_AND_ASSIGN(const NodeList nodes, client_->Nodes());
  EXPECT_EQ(ToJson(nodes), ToJson(job_.Nodes().value()));
  MUSTER_ASSERT_OK_AND_ASSIGN(const Node node, client_->GetNode("ps-1"));
  EXPECT_EQ(node.name, "ps-1");
  MUSTER_ASSERT_OK_AND_ASSIGN(const EventList events, client_->Events(1, 10));
  ASSERT_EQ(events.events.size(), 1u);
  EXPECT_EQ(events.events[0].id, 2u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const Explanation explanation, client_->Explain(2));
  EXPECT_EQ(explanation.event.id, 2u);
  MUSTER_ASSERT_OK_AND_ASSIGN(const PolicyList policies, client_->Policies());
  EXPECT_EQ(policies.policies.size(), 2u);
}

TEST_F(RestClientTest, AnOrderGivesTheEventThatItCaused) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const Event event,
                              client_->Give({RestartNode{.node = "ps-0"}, "why \"not\""}));
  EXPECT_EQ(event.id, 1u);
  EXPECT_EQ(event.kind, "action");
  EXPECT_EQ(event.because, "why \"not\"");
  EXPECT_EQ(job_.GetNode("ps-0")->start, 2u);
}

/// What arrives is what was sent: the client writes what the routes read.
TEST_F(RestClientTest, EveryOrderOfAPersonArrivesAsItWas) {
  const std::vector<Order> orders = {
      RestartNode{.node = "ps-0", .only_start = 1},
      ResizeNode{.node = "ps-1", .cpus = 1.5, .memory_bytes = uint64_t{1} << 30},
      ResizeNode{.node = "ps-1", .cpus = 2},
      ScaleWorkers{3},
      EndNode{"worker-1"},
      SetPaused{"straggler", true},
      SetPaused{"straggler", false},
      RetryShards{},
      DrainJob{},
      CancelJob{}};
  for (const Order& order : orders) {
    // Whose shards are tried again is reason enough.
    const bool reasoned = !std::holds_alternative<RetryShards>(order);
    MUSTER_ASSERT_OK_AND_ASSIGN(const Event event,
                                client_->Give({order, reasoned ? "because" : ""}));
    EXPECT_EQ(event.action, ActionName(order));
    EXPECT_EQ(event.target, TargetOf(order));
    EXPECT_EQ(event.because, reasoned ? "because" : "a person gave this order") << event.action;
    EXPECT_EQ(event.after.size(), event.action == "resize" ? event.before.size() : 0);
  }
  EXPECT_EQ(job_.GetNode("ps-1")->limits.cpus, 2);
  EXPECT_EQ(job_.GetNode("ps-1")->limits.memory_bytes, uint64_t{1} << 30);
  EXPECT_FALSE(job_.Policies()->policies[1].paused);
  EXPECT_EQ(job_.GetJob()->state, JobState::kCancelled);
  EXPECT_THAT(client_->Give({RestartNode{.node = "ps-0", .only_start = 1}, ""}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has start 2")));
  EXPECT_THAT(client_->Give({FailJob{"no"}, ""}), StatusIs(absl::StatusCode::kUnimplemented, _));
}

TEST_F(RestClientTest, RefusalsKeepTheirWordsAndTheirKind) {
  EXPECT_THAT(client_->GetNode("ps-7"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("'ps-7'")));
  EXPECT_THAT(client_->GetNode("a b/c?"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a b/c?'")));
  EXPECT_THAT(client_->Give({ScaleWorkers{9}, ""}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("budget of 8")));
  EXPECT_THAT(client_->Post("/api/v1/nodes/ps-0/restart", {{"raison", "x"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("raison")));
  job_.Fail(absl::UnavailableError("the master is away"));
  EXPECT_THAT(client_->GetJob(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the master is away")));
  const RestClient stranger({.port = port_, .token = "wrong"});
  EXPECT_THAT(stranger.Nodes(), StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("token")));
}

TEST_F(RestClientTest, AServerThatIsGoneDidNothing) {
  server_->Stop();
  server_.reset();
  EXPECT_THAT(client_->Give({DrainJob{}, ""}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(std::to_string(port_))));
}

TEST_F(RestClientTest, WhoeverDoesNotAnswerInTimeMayHaveDoneIt) {
  job_.Hold();
  const RestClient impatient(
      {.port = port_, .token = testing::kToken, .deadline = std::chrono::milliseconds(20)});
  EXPECT_THAT(impatient.GetJob(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                           HasSubstr("may have been carried out")));
  job_.Release();
}

TEST_F(RestClientTest, WhoeverIsSlowIsWaitedForWithAWord) {
  int words = 0;
  const RestClient client({.port = port_,
                           .token = testing::kToken,
                           .deadline = std::chrono::seconds(60),
                           .on_slow =
                               [&] {
                                 ++words;
                                 job_.Release();
                               },
                           .slow_after = std::chrono::milliseconds(10)});
  job_.Hold();
  EXPECT_THAT(client.GetJob(), muster::testing::IsOk());
  EXPECT_EQ(words, 1);
}

TEST(ReadAnswerTest, WhatIsNoProblemDocumentIsStillAnError) {
  EXPECT_THAT(ReadAnswer(200, "<html>"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no JSON")));
  EXPECT_THAT(ReadAnswer(503, "busy"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("503")));
  EXPECT_THAT(ReadAnswer(500, "[]"), StatusIs(absl::StatusCode::kInternal, HasSubstr("500")));
  EXPECT_THAT(ReadAnswer(422, R"({"detail": 7})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("422")));
  EXPECT_THAT(ReadAnswer(302, ""), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("302")));
}

}  // namespace
}  // namespace muster::scaler::rest
