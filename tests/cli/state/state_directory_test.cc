#include "cli/state/state_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/token_file.h"
#include "security/join_token.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

TEST(StateDirectoryTest, EndpointRoundTrip) {
  TempDir folder;
  const StateDirectory state(folder.File("state"));
  ASSERT_THAT(state.Create(), IsOk());
  EXPECT_THAT(state.ReadEndpoint(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder.File("state"))));
  const Endpoint endpoint{.master = "127.0.0.1:20001",
                          .pid = 42,
                          .run_id = "abc",
                          .job = {"id-1", "demo"},
                          .certificates = "/s/tls"};
  ASSERT_THAT(state.WriteEndpoint(endpoint), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const Endpoint back, state.ReadEndpoint());
  EXPECT_EQ(back, endpoint);
  state.RemoveEndpoint();
  EXPECT_THAT(state.ReadEndpoint(), StatusIs(absl::StatusCode::kNotFound, _));
  for (const char* text : {R"({"master": "a:1")", R"({"master": 7})", R"({"pid": 7})",
                           R"({"master": "a:1", "pid": "7"})", R"({"master": "a:1", "job": 7})",
                           R"({"master": "a:1", "job_id": "a b"})"}) {
    ASSERT_THAT(WriteFileAtomically(state.run() + "/endpoint.json", text), IsOk());
    EXPECT_THAT(state.ReadEndpoint(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")))
        << text;
  }
}

TEST(StateDirectoryTest, MachinesThatJoinHaveTokensOfTheirOwn) {
  TempDir folder;
  const StateDirectory state(folder.File("state"));
  ASSERT_THAT(state.Create(), IsOk());
  ASSERT_THAT(state.MakeToken(), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string token, LoadToken(state.token()));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string worker,
                              LoadToken(state.JoinTokenOf(Role::kWorker)));
  EXPECT_EQ(JoinRoleOf(worker, token), Role::kWorker);
  // A new token of the job makes new ones.
  ASSERT_EQ(::unlink(state.token().c_str()), 0);
  ASSERT_THAT(state.MakeToken(), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string later, LoadToken(state.JoinTokenOf(Role::kWorker)));
  EXPECT_NE(later, worker);
}

TEST(StateDirectoryTest, RestAddressRoundTrip) {
  TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), IsOk());
  EXPECT_THAT(state.ReadRestAddress(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no scaler serves")));
  const RestAddress address{.port = 20'200, .pid = ::getpid(), .certificates = "/s/tls"};
  ASSERT_THAT(state.WriteRestAddress(address), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const RestAddress back, state.ReadRestAddress());
  EXPECT_EQ(back, address);
  state.RemoveRestAddress();
  EXPECT_THAT(state.ReadRestAddress(), StatusIs(absl::StatusCode::kNotFound, _));
  for (const char* text :
       {"", "7", R"({"port": 20200)", R"({"port": 0, "pid": 1})", R"({"port": 65536, "pid": 1})",
        R"({"port": "20200", "pid": 1})", R"({"port": 20200})", R"({"port": 20200, "pid": -1})"}) {
    ASSERT_THAT(WriteFileAtomically(state.run() + "/rest.json", text), IsOk());
    EXPECT_THAT(state.ReadRestAddress(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")))
        << text;
  }
}

TEST(StateDirectoryTest, ADeadScalerHasNoRestAddress) {
  TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), IsOk());
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  ASSERT_THAT(state.WriteRestAddress({.port = 20'200, .pid = gone}), IsOk());
  ASSERT_THAT(MakeDirectories(state.scaler()), IsOk());
  ASSERT_THAT(WriteFileAtomically(state.scaler() + "/lock", ""), IsOk());
  {
    const int held = ::open((state.scaler() + "/lock").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
    EXPECT_THAT(state.ReadRestAddress(), IsOk()) << "it runs where its pid is not seen";
    ::close(held);
  }
  EXPECT_THAT(state.ReadRestAddress(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("has ended")));
}

TEST(StateDirectoryTest, PathThatCannotBeAFolder) {
  TempDir folder;
  ASSERT_THAT(WriteFileAtomically(folder.File("file"), "x"), IsOk());
  const absl::Status status = StateDirectory(folder.File("file") + "/state").Create();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(Message(status)), HasSubstr("spec.stateDirectory"));
}

TEST(StateDirectoryTest, LockIsHeldByOneAndNamesTheHolder) {
  TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), IsOk());
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(const StateLock lock, StateLock::Acquire(state));
    EXPECT_THAT(
        StateLock::Acquire(state),
        StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("pid " + std::to_string(::getpid()))));
  }
  EXPECT_THAT(StateLock::Acquire(state), IsOk());
}

TEST(StateDirectoryTest, EndpointOfAKilledRunIsNone) {
  TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), IsOk());
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  ASSERT_THAT(state.WriteEndpoint({.master = "127.0.0.1:20001", .pid = gone, .run_id = "abc"}),
              IsOk());
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(const StateLock lock, StateLock::Acquire(state));
    EXPECT_THAT(state.ReadEndpoint(), IsOk()) << "something of the run is still there";
  }
  EXPECT_THAT(state.ReadEndpoint(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("was killed")));
}

TEST(StateLockTest, TheLockOfALostMachineIsPassedOver) {
  TempDir folder;
  const StateDirectory state(folder.path());
  ASSERT_THAT(state.Create(), IsOk());
  std::vector<std::string> told;
  const auto tell = [&told](std::string_view text) { told.emplace_back(text); };
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(
        const StateLock free, StateLock::AcquireOrPass(state, std::chrono::milliseconds(40), tell));
    EXPECT_TRUE(told.empty());
    EXPECT_THAT(StateLock::Acquire(state), StatusIs(absl::StatusCode::kAlreadyExists, _))
        << "it has the lock";
  }
  MUSTER_ASSERT_OK_AND_ASSIGN(const StateLock lost, StateLock::Acquire(state));
  EXPECT_THAT(StateLock::AcquireOrPass(state, std::chrono::milliseconds(40), tell), IsOk());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told.front(), HasSubstr("without the lock"));
}

mode_t ModeOf(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

TEST(StateDirectoryTest, ItsOwnerAloneMayUseIt) {
  TempDir folder;
  const mode_t former = ::umask(0);
  const StateDirectory fresh(folder.File("fresh"));
  ASSERT_THAT(fresh.Create(), IsOk());
  for (const std::string& path : {fresh.path(), fresh.run(), fresh.logs()}) {
    EXPECT_EQ(ModeOf(path), 0700u) << path;
  }
  // That of an earlier release is recognised by its lock.
  const StateDirectory old(folder.File("old"));
  ASSERT_THAT(MakeDirectories(old.run()), IsOk());
  ASSERT_THAT(WriteFileAtomically(old.lock(), ""), IsOk());
  ASSERT_THAT(old.Create(), IsOk());
  EXPECT_EQ(ModeOf(old.path()), 0700u);
  EXPECT_EQ(ModeOf(old.run()), 0700u);
  // The user's own folder is not closed to those with whom it is shared.
  const StateDirectory shared(folder.File("shared"));
  ASSERT_THAT(MakeDirectories(shared.path()), IsOk());
  ASSERT_THAT(WriteFileAtomically(shared.path() + "/data.txt", "1"), IsOk());
  ASSERT_THAT(shared.Create(), IsOk());
  EXPECT_EQ(ModeOf(shared.path()), 0777u);
  EXPECT_EQ(ModeOf(shared.run()), 0700u);
  ::umask(former);
}

}  // namespace
}  // namespace muster
