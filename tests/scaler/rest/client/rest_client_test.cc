#include "scaler/rest/client/rest_client.h"

#include <gmock/gmock.h>

#include <optional>

#include "scaler/rest/model_json.h"
#include "tests/scaler/rest/server/rest_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster::scaler::rest {
namespace {

using muster::testing::StatusIs;
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
                              client_->Act("nodes/ps-0/restart", {{"reason", "why \"not\""}}));
  EXPECT_EQ(event.id, 1u);
  EXPECT_EQ(event.kind, "action");
  EXPECT_EQ(event.because, "why \"not\"");
  EXPECT_EQ(job_.GetNode("ps-0")->start, 2u);
}

TEST_F(RestClientTest, RefusalsKeepTheirWordsAndTheirKind) {
  EXPECT_THAT(client_->GetNode("ps-7"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("'ps-7'")));
  EXPECT_THAT(client_->GetNode("a b/c?"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a b/c?'")));
  EXPECT_THAT(client_->Act("workers/scale", {{"workers", 9}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("budget of 8")));
  EXPECT_THAT(client_->Act("nodes/ps-0/restart", {{"raison", "x"}}),
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
  EXPECT_THAT(client_->Act("job/drain", nlohmann::json::object()),
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

TEST(EncodePathPartTest, WhatHasAMeaningInAPathIsEncoded) {
  EXPECT_EQ(EncodePathPart("worker-1_a.b~"), "worker-1_a.b~");
  EXPECT_EQ(EncodePathPart("a/b?c%\xc3\xa4"), "a%2Fb%3Fc%25%C3%A4");
}

}  // namespace
}  // namespace muster::scaler::rest
