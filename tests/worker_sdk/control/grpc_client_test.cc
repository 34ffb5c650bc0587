#include "worker_sdk/control/grpc_client.h"

#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/worker_sdk/control/raw_master.h"
#include "worker_sdk/control/group_client.h"
#include "worker_sdk/control/grpc_call.h"
#include "worker_sdk/control/http2_connection.h"

namespace muster::sdk {
namespace {

using muster::testing::StatusIs;
using std::chrono::milliseconds;
using testing::Answer;
using ::testing::HasSubstr;
using testing::RawMaster;
using Code = absl::StatusCode;

constexpr milliseconds kLongLimit{20'000};

std::string NoAnswer(uint32_t /*stream*/) {
  return "";
}

/// Answers of calls, by what was asked.
struct Calls {
  void Begin(GrpcClient* client, const std::string& request, milliseconds timeout = kLongLimit) {
    client->Call("/service/Method", request, timeout,
                 [this, request](const auto& answer) { answers.emplace(request, answer); });
  }
  const absl::StatusOr<std::string>& Await(const std::string& request) {
    while (!answers.contains(request)) loop.run_one();
    return answers.at(request);
  }
  boost::asio::io_context loop;
  std::map<std::string, absl::StatusOr<std::string>> answers;
};

TEST(GrpcClientTest, CallsOverlapOnOneConnection) {
  // The first call is kept; the answer of the second one answers both, the newer first.
  RawMaster master(
      {{NoAnswer}, {[](uint32_t s) { return Answer(s, "second") + Answer(s - 2, "first"); }}});
  Calls calls;
  GrpcClient client(&calls.loop, master.address());
  calls.Begin(&client, "one");
  calls.Begin(&client, "two");
  EXPECT_EQ(calls.Await("two").value(), "second");
  EXPECT_EQ(calls.Await("one").value(), "first");
  EXPECT_EQ(master.connections(), 1);
}

TEST(GrpcClientTest, ACallBesideOneThatHasNoAnswerInTimeIsMadeOnceMore) {
  RawMaster master(
      {{[](uint32_t s) { return Answer(s, "warm"); }}, {NoAnswer}, {NoAnswer}, {[](uint32_t s) {
         return Answer(s, "again");
       }}});
  Calls calls;
  GrpcClient client(&calls.loop, master.address());
  calls.Begin(&client, "first");
  EXPECT_EQ(calls.Await("first").value(), "warm");
  calls.Begin(&client, "short", milliseconds(50));
  calls.Begin(&client, "long");
  EXPECT_THAT(calls.Await("short"), StatusIs(Code::kDeadlineExceeded, HasSubstr("in time")));
  EXPECT_EQ(calls.Await("long").value(), "again");
  EXPECT_EQ(master.connections(), 2);
}

TEST(GrpcClientTest, ACallThatIsDroppedIsNotAnswered) {
  RawMaster master({{NoAnswer}});
  Calls calls;
  auto client = std::make_unique<GrpcClient>(&calls.loop, master.address());
  calls.Begin(client.get(), "one", milliseconds(200));
  calls.loop.poll();
  client.reset();
  calls.loop.run();
  EXPECT_TRUE(calls.answers.empty());
}

TEST(GrpcClientTest, AMasterThatIsNotThereIsNamed) {
  Calls calls;
  GrpcClient client(&calls.loop, "127.0.0.1:1");
  calls.Begin(&client, "one");
  EXPECT_TRUE(calls.answers.empty()) << "never within Call";
  EXPECT_THAT(calls.Await("one"),
              StatusIs(Code::kUnavailable, HasSubstr("the master at 127.0.0.1:1 cannot be")));
}

}  // namespace
}  // namespace muster::sdk
