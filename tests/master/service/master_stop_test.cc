#include <thread>

#include "tests/master/service/counting_journal.h"
#include "tests/master/service/master_server_fixture.h"

/// What callers and the end of a master do while calls are in work.
namespace muster {
namespace {

using testing::Gate;
using testing::IsOk;

/// Its first call waits for the journal until the gate opens.
class BusyMasterTest : public MasterServerTest {
 protected:
  BusyMasterTest() {
    used_journal_ = &slow_;
    // The server gives its calls the time that the clock says. Here they end by themselves.
    clock_.Advance(std::chrono::hours(24 * 365 * 100));
    Start();
    slow_.entered = &entered_;
    slow_.gate = &gate_;
  }
  ~BusyMasterTest() override { server_.reset(); }
  grpc::Status HelloOf(const std::string& worker, grpc::ClientContext* context) {
    v1::HelloRequest request;
    request.set_worker(worker);
    request.set_incarnation(9);
    request.set_sdk_version(std::string(kCompatibleVersion));
    v1::HelloResponse response;
    return worker_->Hello(context, request, &response);
  }

  Gate gate_, entered_;
  testing::CountingJournal slow_;
};

TEST_F(BusyMasterTest, ACallerThatGoesDuringItsCallDisturbsNobody) {
  grpc::ClientContext context;
  grpc::Status status;
  std::thread caller([&] { status = HelloOf("worker-0", &context); });
  entered_.Wait();
  context.TryCancel();
  caller.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  gate_.Open();
  EXPECT_TRUE(Hello(kCompatibleVersion, "worker-1").ok());
  v1::WorkerExchangeReply reply;
  EXPECT_TRUE(Exchange({}, &reply).ok()) << "the step of worker-0 has happened";
}

TEST_F(BusyMasterTest, AStopAnswersTheCallsThatAreInWork) {
  grpc::ClientContext first_context, second_context;
  grpc::Status first, second;
  std::thread caller([&] { first = HelloOf("worker-0", &first_context); });
  entered_.Wait();
  std::thread other([&] { second = HelloOf("worker-1", &second_context); });
  std::thread stopping([&] { server_->Stop(); });
  gate_.Open();
  for (std::thread* thread : {&caller, &other, &stopping}) thread->join();
  EXPECT_TRUE(first.ok()) << first.error_message();
  // It came before the stop, during it, or when the server took no more calls.
  EXPECT_THAT(second.error_code(),
              ::testing::AnyOf(grpc::StatusCode::OK, grpc::StatusCode::UNAVAILABLE,
                               grpc::StatusCode::CANCELLED));
  EXPECT_EQ(server_->failure(), std::nullopt);
  server_->Stop();
}

TEST_F(BusyMasterTest, AJournalThatFailsInTheMiddleAnswersEveryCall) {
  grpc::ClientContext first_context, second_context;
  grpc::Status first, second;
  std::thread caller([&] { first = HelloOf("worker-0", &first_context); });
  entered_.Wait();
  std::thread other([&] { second = HelloOf("worker-1", &second_context); });
  slow_.memory.FailWith(absl::ResourceExhaustedError("the disk is full"));
  gate_.Open();
  for (std::thread* thread : {&caller, &other}) thread->join();
  EXPECT_THAT(first, RpcIs(grpc::StatusCode::UNAVAILABLE, ::testing::HasSubstr("another master")));
  EXPECT_THAT(second, RpcIs(grpc::StatusCode::UNAVAILABLE, ::testing::HasSubstr("another master")));
  ASSERT_TRUE(server_->failure().has_value());
  EXPECT_EQ(server_->failure()->code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace muster
