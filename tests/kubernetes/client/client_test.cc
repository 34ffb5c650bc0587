#include "kubernetes/client/client.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/file.h"
#include "kubernetes/model/api_error.h"
#include "tests/kubernetes/client/fake_api_server.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::_;
using testing::Answer;
using testing::FakeApiServer;
using testing::FakeRequest;
using testing::FakeWire;
using ::testing::HasSubstr;

/// A client of a fake server.
struct ClientOfFake {
  explicit ClientOfFake(FakeApiServer::Handler handler, ClientOptions options = {})
      : server(std::move(handler)),
        credentials(server.Access(), &clock),
        client(&credentials, &clock, options) {}

  FakeApiServer server;
  SystemClock clock;
  CredentialSource credentials;
  Client client;
};

std::string StatusText(int code, const std::string& reason) {
  return R"({"kind":"Status","status":"Failure","message":"words","reason":")" + reason +
         R"(","code":)" + std::to_string(code) + "}";
}

TEST(Client, SendsWhatTheApiExpects) {
  ClientOfFake fake([](const FakeRequest&, FakeWire& wire) { wire.Send(Answer(200, "{}")); });
  const ObjectPlace pod{.resource = Resource::kPods, .ns = "team", .name = "a"};
  ASSERT_THAT(fake.client.Create(Resource::kPods, "team", {{"kind", "Pod"}}), testing::IsOk());
  ASSERT_THAT(fake.client.Get(pod), testing::IsOk());
  ASSERT_THAT(fake.client.Delete(pod, {.uid = "u", .grace = seconds(5)}), testing::IsOk());
  ASSERT_THAT(fake.client.Patch(pod, PatchKind::kMerge, {{"a", 1}}), testing::IsOk());
  ASSERT_THAT(fake.client.Logs("team", "a", {.tail_lines = 3}), testing::IsOk());
  const auto seen = fake.server.requests();
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(fake.client.requests(), 5u);
  EXPECT_EQ(seen[0].method + " " + seen[0].target, "POST /api/v1/namespaces/team/pods");
  EXPECT_EQ(seen[0].body, R"({"kind":"Pod"})");
  EXPECT_EQ(seen[0].authorization, "Bearer secret");
  EXPECT_EQ(seen[1].method + " " + seen[1].target, "GET /api/v1/namespaces/team/pods/a");
  EXPECT_EQ(seen[1].body, "");
  EXPECT_EQ(seen[2].method + " " + seen[2].target, "DELETE /api/v1/namespaces/team/pods/a");
  EXPECT_THAT(seen[2].body, HasSubstr(R"("preconditions":{"uid":"u"})"));
  EXPECT_EQ(seen[3].method, "PATCH");
  EXPECT_EQ(seen[3].content_type, "application/merge-patch+json");
  EXPECT_EQ(seen[4].target, "/api/v1/namespaces/team/pods/a/log?tailLines=3");
  // All of them on one connection.
  EXPECT_EQ(seen.back().connection, 1);
}

TEST(Client, GoesWhereTheAccessSays) {
  FakeApiServer server([](const FakeRequest&, FakeWire& wire) { wire.Send(Answer(200, "{}")); });
  const ObjectPlace pod{.resource = Resource::kPods, .ns = "t", .name = "a"};
  const SystemClock clock;
  const auto ask = [&](const ClusterAccess& access) {
    CredentialSource credentials(access, &clock);
    return Client(&credentials, &clock).Get(pod).status();
  };
  ClusterAccess access = server.Access();
  access.path_prefix = "/k8s/c1";
  EXPECT_THAT(ask(access), testing::IsOk());
  EXPECT_EQ(server.requests().back().target, "/k8s/c1/api/v1/namespaces/t/pods/a");
  access.tls_server_name = "other.example.com";
  EXPECT_THAT(ask(access),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not trusted")));
  access.tls_server_name = "127.0.0.1";
  access.host = "localhost";
  EXPECT_THAT(ask(access), testing::IsOk());
  access.authority.text = testing::TestAuthority().certificate();
  EXPECT_THAT(ask(access),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not trusted")));
  access = server.Access();
  access.client_certificate.text = "no";
  access.client_key.text = "no";
  EXPECT_THAT(ask(access),
              testing::StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("certificate")));
}

TEST(Client, AServerThatIsAwayIsUnavailable) {
  ClusterAccess access;
  {
    FakeApiServer server([](const FakeRequest&, FakeWire&) {});
    access = server.Access();
  }
  const SystemClock clock;
  CredentialSource credentials(access, &clock);
  const absl::Status status = Client(&credentials, &clock)
                                  .Get({.resource = Resource::kPods, .ns = "t", .name = "a"})
                                  .status();
  EXPECT_EQ(KindOf(status), ApiErrorKind::kUnavailable);
  EXPECT_THAT(status,
              testing::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nothing answers")));
}

TEST(Client, NoNameNoDeletion) {
  ClientOfFake fake([](const FakeRequest&, FakeWire& wire) { wire.Send(Answer(200, "{}")); });
  EXPECT_THAT(fake.client.Delete({.resource = Resource::kPods, .ns = "team"}, {}),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_TRUE(fake.server.requests().empty());
}

TEST(Client, ErrorsHaveTheirKindAndWait) {
  ClientOfFake fake([](const FakeRequest& request, FakeWire& wire) {
    if (request.method == "POST") {
      wire.Send(Answer(409, StatusText(409, "AlreadyExists")));
    } else {
      wire.Send(Answer(429, "slow down", "Retry-After: 7\r\n"));
    }
  });
  EXPECT_EQ(KindOf(fake.client.Create(Resource::kPods, "t", {}).status()),
            ApiErrorKind::kAlreadyExists);
  const absl::Status status =
      fake.client.Get({.resource = Resource::kPods, .ns = "t", .name = "a"}).status();
  EXPECT_EQ(KindOf(status), ApiErrorKind::kTooManyRequests);
  EXPECT_EQ(RetryAfterOf(status), seconds(7));
}

TEST(Client, ListsPageByPage) {
  ClientOfFake fake([](const FakeRequest& request, FakeWire& wire) {
    const bool is_second = request.target.find("continue=next") != std::string::npos;
    wire.Send(Answer(
        200, is_second
                 ? R"({"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"b"}}]})"
                 : R"({"metadata":{"resourceVersion":"9","continue":"next"},
                       "items":[{"metadata":{"name":"a"}}]})"));
  });
  MUSTER_ASSERT_OK_AND_ASSIGN(const ObjectList list,
                              fake.client.List(Resource::kPods, "t", {.labels = "x=y"}));
  EXPECT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.version, "9");
  EXPECT_THAT(fake.server.requests()[1].target, HasSubstr("labelSelector=x%3Dy&limit=500"));
}

TEST(Client, APageThatIsTooOldBeginsTheListAgain) {
  ClientOfFake fake([](const FakeRequest& request, FakeWire& wire) {
    if (request.target.find("continue=") != std::string::npos) {
      wire.Send(Answer(410, StatusText(410, "Expired")));
    } else if (request.target.find("limit=") != std::string::npos) {
      wire.Send(Answer(200, R"({"metadata":{"resourceVersion":"1","continue":"n"},"items":[{}]})"));
    } else {
      wire.Send(Answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[{},{},{}]})"));
    }
  });
  MUSTER_ASSERT_OK_AND_ASSIGN(const ObjectList list, fake.client.List(Resource::kPods, "t", {}));
  EXPECT_EQ(list.items.size(), 3u);
  EXPECT_EQ(list.version, "5");
}

TEST(Client, ListsAreBounded) {
  ClientOfFake fake(
      [](const FakeRequest&, FakeWire& wire) {
        wire.Send(Answer(200, R"({"metadata":{"continue":"n"},"items":[{},{}]})"));
      },
      {.objects_max = 5});
  EXPECT_THAT(fake.client.List(Resource::kPods, "t", {}),
              testing::StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("5 pods")));
}

TEST(Client, AnswersThatAreNoJson) {
  ClientOfFake fake([](const FakeRequest& request, FakeWire& wire) {
    wire.Send(Answer(200, request.target.ends_with("/a") ? "<html>" : "[]"));
  });
  EXPECT_THAT(fake.client.Get({.resource = Resource::kPods, .ns = "t", .name = "a"}),
              testing::StatusIs(absl::StatusCode::kInternal, HasSubstr("<html>")));
  EXPECT_THAT(fake.client.List(Resource::kPods, "t", {}),
              testing::StatusIs(absl::StatusCode::kInternal, _));
}

TEST(Client, AReadIsRepeatedWhenAWaitingConnectionBreaks) {
  // The server takes the second request of a connection, and dies.
  ClientOfFake fake([connection = 0](const FakeRequest& request, FakeWire& wire) mutable {
    if (request.connection == connection) return wire.Cut();
    connection = request.connection;
    wire.Send(Answer(200, "{}"));
  });
  const ObjectPlace pod{.resource = Resource::kPods, .ns = "t", .name = "a"};
  ASSERT_THAT(fake.client.Get(pod), testing::IsOk());
  EXPECT_THAT(fake.client.Get(pod), testing::IsOk());
  EXPECT_EQ(fake.server.requests().size(), 3u);
  // A change is not repeated: nobody knows if it happened.
  EXPECT_THAT(fake.client.Create(Resource::kPods, "t", {{"a", 1}}),
              testing::StatusIs(absl::StatusCode::kUnavailable, _));
  EXPECT_EQ(fake.server.requests().size(), 4u);
}

TEST(Client, ATokenFileIsReadForEachRequest) {
  const testing::TempDir folder;
  FakeApiServer server([](const FakeRequest&, FakeWire& wire) { wire.Send(Answer(200, "{}")); });
  ClusterAccess access = server.Access();
  access.token_file = folder.File("token");
  const SystemClock clock;
  CredentialSource credentials(access, &clock);
  Client client(&credentials, &clock);
  for (const char* token : {"one", "two"}) {
    ASSERT_THAT(WriteFileAtomically(folder.File("token"), token), testing::IsOk());
    ASSERT_THAT(client.Get({.resource = Resource::kPods, .ns = "t"}), testing::IsOk());
    EXPECT_EQ(server.requests().back().authorization, std::string("Bearer ") + token);
  }
}

TEST(Client, ARefusedPluginIsAskedAgain) {
  const testing::TempDir folder;
  FakeApiServer server([](const FakeRequest& request, FakeWire& wire) {
    const bool good = request.authorization == "Bearer 2";
    wire.Send(good ? Answer(200, "{}") : Answer(401, StatusText(401, "Unauthorized")));
  });
  ClusterAccess access = server.Access();
  access.token = "";
  const std::string count = folder.File("count");
  access.exec = ExecPlugin{
      .command = "sh",
      .arguments = {"-c", "echo x >>" + count +
                              "; echo '{\"apiVersion\":"
                              "\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
                              "\"status\":{\"token\":\"'$(wc -l <" +
                              count + ")'\"}}'"},
      .api_version = "client.authentication.k8s.io/v1"};
  const SystemClock clock;
  CredentialSource credentials(access, &clock);
  Client client(&credentials, &clock);
  EXPECT_THAT(client.Get({.resource = Resource::kPods, .ns = "t"}), testing::IsOk());
  EXPECT_EQ(server.requests().size(), 2u);
}

class ClientWatch : public ::testing::Test {
 protected:
  /// Watches a server that sends `bytes` and then ends as the test says.
  absl::Status Watch(const std::string& bytes, bool cut, ClientOptions options = {}) {
    ClientOfFake fake(
        [&](const FakeRequest&, FakeWire& wire) {
          wire.Send(bytes);
          if (cut) wire.Cut();
        },
        options);
    return fake.client.Watch(Resource::kPods, "t", {}, "5", [this](const nlohmann::json& event) {
      seen_.push_back(event.dump());
      return absl::OkStatus();
    });
  }

  std::vector<std::string> seen_;
};

TEST_F(ClientWatch, GivesEventsUntilTheServerEnds) {
  using testing::Chunk;
  EXPECT_THAT(Watch(testing::ChunkedHead() + Chunk("{\"a\":1}\n{\"a\"") + Chunk(":2}\n") +
                        testing::kLastChunk,
                    false),
              testing::IsOk());
  EXPECT_THAT(seen_, ::testing::ElementsAre("{\"a\":1}", "{\"a\":2}"));
}

TEST_F(ClientWatch, ACutStreamIsAnError) {
  EXPECT_THAT(Watch(testing::ChunkedHead() + testing::Chunk("{\"a\":1}\n{\"a\""), true),
              testing::StatusIs(absl::StatusCode::kUnavailable, _));
  EXPECT_THAT(seen_, ::testing::ElementsAre("{\"a\":1}"));
  EXPECT_THAT(Watch(testing::ChunkedHead() + testing::Chunk("{\"a\"") + testing::kLastChunk, false),
              testing::StatusIs(absl::StatusCode::kUnavailable, HasSubstr("inside an event")));
}

TEST_F(ClientWatch, Refusals) {
  EXPECT_EQ(KindOf(Watch(Answer(410, StatusText(410, "Expired")), false)), ApiErrorKind::kGone);
  EXPECT_THAT(Watch(Answer(200, std::string(200, 'x')), false, {.event_bytes_max = 100}),
              testing::StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("100 bytes")));
  EXPECT_TRUE(seen_.empty());
}

TEST(Client, AHangingWatchIsLeft) {
  ClientOfFake fake(
      [](const FakeRequest& request, FakeWire& wire) {
        if (request.target.find("timeoutSeconds=7&resourceVersion=5") == std::string::npos) return;
        wire.Send(testing::ChunkedHead() + testing::Chunk("{}\n"));
        wire.WaitForClose();
      },
      {.watch_length = seconds(7), .watch_silence_max = milliseconds(50)});
  EXPECT_THAT(fake.client.Watch(Resource::kPods, "t", {}, "5",
                                [](const nlohmann::json&) { return absl::OkStatus(); }),
              testing::StatusIs(absl::StatusCode::kDeadlineExceeded, _));
}

TEST(Client, FollowsLogs) {
  ClientOfFake fake([](const FakeRequest& request, FakeWire& wire) {
    wire.Send(testing::ChunkedHead() + testing::Chunk("line\n"));
    if (request.target.find("/ends/") != std::string::npos) return wire.Send(testing::kLastChunk);
    wire.WaitForClose();
  });
  std::string text;
  const auto take = [&](std::string_view bytes) {
    text += bytes;
    return absl::OkStatus();
  };
  EXPECT_THAT(fake.client.FollowLogs("t", "ends", {}, seconds(60), take), testing::IsOk());
  EXPECT_EQ(text, "line\n");
  EXPECT_THAT(fake.client.FollowLogs("t", "stays", {}, milliseconds(300), take), testing::IsOk());
  EXPECT_THAT(fake.server.requests().back().target, HasSubstr("/stays/log?follow=true"));
}

TEST(Client, AsksWhatItMayDo) {
  ClientOfFake fake([](const FakeRequest& request, FakeWire& wire) {
    const bool may = request.body.find("\"verb\":\"get\"") != std::string::npos;
    wire.Send(Answer(201, may ? R"({"status":{"allowed":true}})" : R"({"status":{}})"));
  });
  EXPECT_EQ(*fake.client.MayI("get", Resource::kPods, "log", "t"), true);
  EXPECT_EQ(*fake.client.MayI("delete", Resource::kPods, "", "t"), false);
  EXPECT_EQ(fake.server.requests()[0].target,
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
}

}  // namespace
}  // namespace muster::kubernetes
