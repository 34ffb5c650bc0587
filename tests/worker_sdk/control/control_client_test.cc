#include "worker_sdk/control/control_client.h"

#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/descriptors.h"
#include "base/version.h"
#include "proto/control.grpc.pb.h"
#include "proto/fields/generated.h"
#include "security/rpc/grpc_credentials.h"
#include "tests/net/tls_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster::sdk {
namespace {

using muster::testing::IsOk;
using muster::testing::StatusIs;
using net::tls_test::Certificates;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kLong{20'000};

class Service final : public v1::WorkerService::Service {
 public:
  grpc::Status Hello(grpc::ServerContext* context, const v1::HelloRequest* request,
                     v1::HelloResponse* response) override {
    if (request->sdk_version() != kCompatibleVersion) return {grpc::FAILED_PRECONDITION, "version"};
    if (!refusal.empty()) return {grpc::FAILED_PRECONDITION, refusal};
    response->set_job(request->worker() + "'s job");
    response->set_group_directory(std::string(extra_bytes, 'x'));
    response->set_job_id("id-1");
    Hear(*context);
    return grpc::Status::OK;
  }
  grpc::Status Exchange(grpc::ServerContext* context, const v1::WorkerExchangeRequest* request,
                        v1::WorkerExchangeReply* reply) override {
    ++calls;
    Hear(*context);
    if (hang) {
      while (!context->IsCancelled()) std::this_thread::yield();
      return grpc::Status::CANCELLED;
    }
    reply->set_master_incarnation(request->sequence());
    for (uint64_t i = 0; i < lost; ++i) reply->add_lost(i);
    return grpc::Status::OK;
  }
  grpc::Status RegisterTable(grpc::ServerContext* context, const v1::RegisterTableRequest*,
                             v1::RegisterTableResponse*) override {
    Hear(*context);
    return {grpc::UNIMPLEMENTED, ""};
  }
  void Hear(const grpc::ServerContext& context) {
    const auto& metadata = context.client_metadata();
    const auto text = [&](const char* key) {
      const auto found = metadata.find(key);
      return found == metadata.end() ? std::string("-")
                                     : std::string(found->second.data(), found->second.size());
    };
    heard_job = text("muster-job-id") + " " + text("muster-job");
  }
  std::string heard_job;  // of the last call
  std::string refusal;
  std::atomic<bool> hang = false;
  std::atomic<int> calls = 0;
  uint64_t lost = 0;
  size_t extra_bytes = 0;
};

class ControlClientTest : public ::testing::Test {
 protected:
  ControlClientTest() { Start("127.0.0.1:0"); }
  ~ControlClientTest() override { Stop(); }
  void Start(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, credentials_, &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Stop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::time_point());
    server_.reset();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::shared_ptr<grpc::ServerCredentials> credentials_ = grpc::InsecureServerCredentials();
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(ControlClientTest, EveryCallNamesTheJobAsFarAsItIsKnown) {
  ControlClient client(address(), "worker-0", {});
  MUSTER_ASSERT_OK_AND_ASSIGN(const HelloResponse answer, client.Hello(1, 3, kLong));
  EXPECT_EQ(service_.heard_job, "- -");
  EXPECT_EQ(answer.job_id, "id-1");
  ASSERT_THAT(client.Hello(1, 3, kLong), IsOk());
  EXPECT_EQ(service_.heard_job, "id-1 worker-0's job") << "as it was told";
  ControlClient other(address(), "worker-0", {"id-2", "flights"});
  EXPECT_THAT(other.RegisterTable({}, kLong),
              StatusIs(absl::StatusCode::kUnimplemented, ::testing::_));
  EXPECT_EQ(service_.heard_job, "id-2 flights");
  ASSERT_THAT(other.Exchange({}, kLong), IsOk());
  EXPECT_EQ(service_.heard_job, "id-2 flights");
  ASSERT_THAT(ControlClient(address(), "worker-0", {"id-2", ""}).Hello(1, 3, kLong), IsOk());
  EXPECT_EQ(service_.heard_job, "id-2 -") << "of the environment";
}

TEST_F(ControlClientTest, CallsOverOneConnection) {
  ControlClient client(address(), "worker-0", {});
  MUSTER_ASSERT_OK_AND_ASSIGN(HelloResponse answer, client.Hello(1, 3, kLong));
  EXPECT_EQ(answer.job, "worker-0's job");
  for (uint64_t i = 1; i <= 100; ++i) {
    WorkerExchangeRequest request;
    request.sequence = i;
    MUSTER_ASSERT_OK_AND_ASSIGN(WorkerExchangeReply reply, client.Exchange(request, kLong));
    EXPECT_EQ(reply.master_incarnation.value(), i);
  }
}

TEST_F(ControlClientTest, LargeMessagesGoBothWays) {
  ControlClient client(address(), "worker-0", {});
  WorkerExchangeRequest request;
  request.held.resize(40'000);
  for (size_t i = 0; i < request.held.size(); ++i) {
    request.held[i].token = LeaseToken::FromValue(~0ull - i);
  }
  service_.lost = 100'000;  // the most that is taken
  MUSTER_ASSERT_OK_AND_ASSIGN(WorkerExchangeReply reply, client.Exchange(request, kLong));
  EXPECT_EQ(reply.lost.size(), 100'000u);
}

TEST_F(ControlClientTest, TheServersStatusComesThrough) {
  service_.refusal = "SDK 0.9 cannot join: 100% \"no\"\nmaster has 0.1";
  ControlClient client(address(), "worker-0", {});
  EXPECT_THAT(client.Hello(1, 3, kLong),
              StatusIs(absl::StatusCode::kFailedPrecondition, service_.refusal));
  EXPECT_THAT(client.RegisterTable(TableSpec{}, kLong),
              StatusIs(absl::StatusCode::kUnimplemented, ::testing::_));
  service_.refusal.clear();
  EXPECT_THAT(client.Hello(1, 3, kLong), IsOk());
}

TEST_F(ControlClientTest, ARestartedServerIsFoundAgain) {
  ControlClient client(address(), "worker-0", {});
  EXPECT_THAT(client.Hello(1, 3, kLong), IsOk());
  std::string same = address();
  Stop();
  EXPECT_THAT(client.Hello(1, 3, kLong),
              StatusIs(absl::StatusCode::kUnavailable,
                       ::testing::AllOf(HasSubstr(same), HasSubstr("refused"))));
  Start(same);
  EXPECT_THAT(client.Hello(1, 3, kLong), IsOk());
  Stop();
  Start(same);
  EXPECT_THAT(client.Hello(1, 3, kLong), IsOk());  // the kept connection is dead: within one call
}

TEST_F(ControlClientTest, ADeadlineEndsTheCallAndTheNextOneWorks) {
  ControlClient client(address(), "worker-0", {});
  service_.hang = true;
  EXPECT_THAT(client.Exchange({}, milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ::testing::_));
  service_.hang = false;
  EXPECT_THAT(client.Exchange({}, kLong), IsOk());
}

TEST_F(ControlClientTest, AnAnswerBeyondTheLimitIsAnErrorAndTheNextCallWorks) {
  ControlClient client(address(), "worker-0", {});
  service_.extra_bytes = GrpcClient::kResponseBytesMax;
  EXPECT_THAT(client.Hello(1, 3, kLong),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 67108864")));
  service_.extra_bytes = 0;
  EXPECT_THAT(client.Hello(1, 3, kLong), IsOk());
}

TEST(IsPermanentTest, WhatTheMasterWillNotAnswerOtherwise) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kInvalidArgument, absl::StatusCode::kFailedPrecondition,
        absl::StatusCode::kPermissionDenied, absl::StatusCode::kUnimplemented,
        absl::StatusCode::kUnauthenticated}) {
    EXPECT_TRUE(IsPermanent(absl::Status(code, ""))) << code;
  }
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnknown,
        absl::StatusCode::kInternal}) {
    EXPECT_FALSE(IsPermanent(absl::Status(code, ""))) << code;
  }
}

TEST_F(ControlClientTest, BadAddressesAreNamed) {
  EXPECT_THAT(ControlClient("nonsense", "w", {}).Hello(1, 3, kLong),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'nonsense'")));
}

TEST_F(ControlClientTest, SomethingElseListeningIsNoMaster) {
  int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in self{};
  self.sin_family = AF_INET;
  self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(self);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&self), size), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&self), &size), 0);
  std::thread peer([&] {
    int connection = ::accept(fd, nullptr, nullptr);
    const char text[] = "SSH-2.0-OpenSSH_9.2\r\n";
    ASSERT_GT(::send(connection, text, sizeof(text) - 1, MSG_NOSIGNAL), 0);
    char buffer[256];
    while (::recv(connection, buffer, sizeof(buffer), 0) > 0) {
    }
    ::close(connection);
  });
  ControlClient client("127.0.0.1:" + std::to_string(ntohs(self.sin_port)), "w", {});
  EXPECT_THAT(client.Hello(1, 3, kLong),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("HTTP/2")));
  peer.join();
  ::close(fd);
}

class TlsControlClientTest : public ControlClientTest {
 protected:
  TlsControlClientTest() {
    Stop();
    credentials_ = MakeGrpcServerCredentials({.files = certificates_.Files(Role::kMaster),
                                              .ours = {"id-1", Role::kMaster}},
                                             SystemClock().Wall())
                       .value();
    Start("127.0.0.1:0");
  }
  net::TlsContextSource Tls(Role role = Role::kWorker) {
    return [this, role] {
      ++connections_;
      return net::SourceOf(certificates_.ClientContext(role, Role::kMaster))();
    };
  }

  Certificates certificates_;
  int connections_ = 0;
};

TEST_F(TlsControlClientTest, CallsOverOneConnection) {
  ControlClient client(address(), "worker-0", {}, Tls());
  MUSTER_ASSERT_OK_AND_ASSIGN(HelloResponse answer, client.Hello(1, 3, kLong));
  EXPECT_EQ(answer.job, "worker-0's job");
  for (uint64_t i = 1; i <= 100; ++i) {
    WorkerExchangeRequest request;
    request.sequence = i;
    MUSTER_ASSERT_OK_AND_ASSIGN(WorkerExchangeReply reply, client.Exchange(request, kLong));
    EXPECT_EQ(reply.master_incarnation.value(), i);
  }
  EXPECT_EQ(connections_, 1);
}

TEST_F(TlsControlClientTest, LargeMessagesGoBothWays) {
  ControlClient client(address(), "worker-0", {}, Tls());
  WorkerExchangeRequest request;
  request.held.resize(40'000);
  for (size_t i = 0; i < request.held.size(); ++i) {
    request.held[i].token = LeaseToken::FromValue(~0ull - i);
  }
  service_.lost = 100'000;
  MUSTER_ASSERT_OK_AND_ASSIGN(WorkerExchangeReply reply, client.Exchange(request, kLong));
  EXPECT_EQ(reply.lost.size(), 100'000u);
}

TEST_F(TlsControlClientTest, ARestartedServerIsFoundAgainWithANewContext) {
  ControlClient client(address(), "worker-0", {}, Tls());
  EXPECT_THAT(client.Hello(1, 3, kLong), IsOk());
  const std::string same = address();
  Stop();
  Start(same);
  EXPECT_THAT(client.Hello(1, 3, kLong), IsOk());
  EXPECT_EQ(connections_, 2);
}

TEST_F(TlsControlClientTest, PlainTextOnOneSideIsUnavailableAndSaysSo) {
  EXPECT_THAT(ControlClient(address(), "w", {}).Hello(1, 3, kLong),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(address())));
  Stop();
  credentials_ = grpc::InsecureServerCredentials();
  Start("127.0.0.1:0");
  EXPECT_THAT(ControlClient(address(), "w", {}, Tls()).Hello(1, 3, kLong),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("plain text")));
}

TEST_F(TlsControlClientTest, AMasterThatClosesInTheHandshakeIsUnavailableAtOnce) {
  const OwnedFd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  sockaddr_in self{};
  socklen_t size = sizeof(self);
  ASSERT_EQ(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&self), &size), 0);
  std::thread peer([&] { const OwnedFd closed(::accept(listening.get(), nullptr, nullptr)); });
  ControlClient client("127.0.0.1:" + std::to_string(ntohs(self.sin_port)), "w", {}, Tls());
  const absl::Status status = client.Hello(1, 3, kLong).status();
  peer.join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               ::testing::Not(HasSubstr("no answer in time"))));
}

TEST_F(TlsControlClientTest, TheMasterOfAnotherJobIsRefused) {
  const Certificates others("id-2");
  const auto tls = net::SourceOf(others.ClientContext(Role::kWorker, Role::kMaster));
  EXPECT_THAT(ControlClient(address(), "w", {}, tls).Hello(1, 3, kLong),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another authority")));
}

}  // namespace
}  // namespace muster::sdk
