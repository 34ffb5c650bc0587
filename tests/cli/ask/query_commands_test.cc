#include "cli/ask/query_commands.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/check.h"
#include "base/file.h"
#include "cli/state/job_source.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Somebody at a port of 127.0.0.1 who hangs up on the first caller, for ever.
class NoMaster {
 public:
  NoMaster() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* const address = reinterpret_cast<sockaddr*>(&address_);
    MUSTER_CHECK(::bind(fd_, address, size) == 0 && ::listen(fd_, 8) == 0);
    MUSTER_CHECK(::getsockname(fd_, address, &size) == 0);
  }
  ~NoMaster() { ::close(fd_); }
  std::string address() const { return fmt::format("127.0.0.1:{}", ntohs(address_.sin_port)); }
  /// False: HangUp() came first.
  bool WaitForCall() const {
    const int call = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (call >= 0) ::close(call);
    return call >= 0;
  }
  void HangUp() const { ::shutdown(fd_, SHUT_RDWR); }

 private:
  int fd_;
  sockaddr_in address_{};
};

TEST(QueryCommandsTest, ARunThatEndsMeanwhileIsOver) {
  testing::TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), testing::IsOk());
  const NoMaster silent;
  ASSERT_THAT(state.WriteEndpoint({silent.address(), ::getpid(), "run", {}}), testing::IsOk());
  bool called = false;
  std::thread run([&] {
    called = silent.WaitForCall();
    silent.HangUp();
    state.RemoveEndpoint();
  });
  const auto source = FindJobSource({.target = {.state_directory = folder.path()}});
  silent.HangUp();
  run.join();
  EXPECT_TRUE(called);
  EXPECT_EQ(source.status().code(), absl::StatusCode::kNotFound) << source.status();
}

/// The working directory, for as long as it lives.
class In {
 public:
  explicit In(const std::string& folder) : former_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~In() { std::filesystem::current_path(former_); }

 private:
  const std::filesystem::path former_;
};

TEST(QueryCommandsTest, AMasterWithoutAJobSaysWhatTheJobIsNeededFor) {
  testing::TempDir folder;
  const In in(folder.path());
  const std::string why(FindJobSource({.master = "127.0.0.1:1"}).status().message());
  EXPECT_THAT(why, AllOf(HasSubstr("the master at 127.0.0.1:1"), HasSubstr("token"),
                         HasSubstr("--state-dir"), HasSubstr("./job.yaml")));
  EXPECT_THAT(FindJobSource({}).status().message(), HasSubstr("there is no ./job.yaml"));
}

}  // namespace
}  // namespace muster
