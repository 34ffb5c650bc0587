#include "base/token_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <latch>
#include <thread>
#include <vector>

#include "base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::MatchesRegex;
using testing::StatusIs;
using testing::TempDir;

TEST(TokenFileTest, ATokenIsMadeOnceAndReadByItsOwnerAlone) {
  TempDir folder;
  const std::string path = folder.File("token");
  EXPECT_THAT(LoadToken(path), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string token, LoadOrMakeToken(path));
  EXPECT_EQ(LoadToken(path).value(), token);
  EXPECT_THAT(token, MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(token.size(), 64u);
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(LoadOrMakeToken(path).value(), token);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string other, LoadOrMakeToken(folder.File("other")));
  EXPECT_NE(other, token);
}

TEST(TokenFileTest, ThreadsThatMissTheFileTogetherMakeOneToken) {
  TempDir folder;
  for (int round = 0; round < 20; ++round) {
    const std::string path = folder.File(fmt::format("token{}", round));
    std::vector<std::string> tokens(8);
    std::latch together(static_cast<std::ptrdiff_t>(tokens.size()));
    std::vector<std::jthread> threads;
    for (std::string& token : tokens) {
      threads.emplace_back([&] {
        together.arrive_and_wait();
        token = LoadOrMakeToken(path).value_or("none");
      });
    }
    threads.clear();
    EXPECT_THAT(tokens, Each(LoadToken(path).value_or("nothing")));
  }
}

/// For `contents` with exactly these permissions, whatever the umask is.
void WriteWithMode(const std::string& path, const std::string& contents, mode_t mode) {
  ASSERT_THAT(WriteFileAtomically(path, contents), IsOk());
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

mode_t ModeOf(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

TEST(TokenFileTest, ATokenThatOthersMayHaveReadIsReplacedByItsOwnerAndUsedByNobody) {
  TempDir folder;
  const std::string path = folder.File("token");
  const std::string read(64, 'a');
  for (const mode_t mode : {0640, 0604, 0620, 0601}) {
    WriteWithMode(path, read + "\n", mode);
    EXPECT_THAT(LoadToken(path),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("must have 0600")));
    EXPECT_EQ(ModeOf(path), mode) << "who asks changes nothing";
    MUSTER_ASSERT_OK_AND_ASSIGN(const std::string token, LoadOrMakeToken(path));
    EXPECT_NE(token, read);
    EXPECT_EQ(ModeOf(path), 0600u);
    EXPECT_EQ(LoadToken(path).value(), token);
  }
  WriteWithMode(path, read, 0400);
  EXPECT_EQ(LoadOrMakeToken(path).value(), read) << "no other user may read it";
}

TEST(TokenFileTest, AFileThatCannotBeTrustedIsRefusedAndLeftAlone) {
  TempDir folder;
  const std::string path = folder.File("token");
  const std::string good = std::string(64, 'a') + "\n";
  const auto refused = [&path](const std::string& text) {
    EXPECT_THAT(LoadOrMakeToken(path),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(text)));
  };
  for (const std::string& contents : {std::string(), std::string(63, 'a'), std::string(65, 'a'),
                                      std::string(64, 'A'), std::string(63, 'a') + "\n\n"}) {
    ASSERT_THAT(WriteFileAtomically(path, contents, FileAccess::kOwnerOnly), IsOk());
    refused("64 hexadecimal digits");
    EXPECT_EQ(ReadFile(path, 1000).value(), contents);
  }
  ASSERT_THAT(WriteFileAtomically(path, good, FileAccess::kOwnerOnly), IsOk());
  EXPECT_THAT(LoadOrMakeToken(path), IsOk());
  ::unlink(path.c_str());
  ASSERT_EQ(::symlink("/dev/zero", path.c_str()), 0);
  refused("symbolic link");
  ::unlink(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  refused("not a regular file");
  ::unlink(path.c_str());
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  refused("not a regular file");
  EXPECT_THAT(LoadOrMakeToken(folder.File("missing/token")).status().ToString(),
              HasSubstr("missing/token"));
}

TEST(SameSecretTest, SecretsAreComparedWhole) {
  EXPECT_TRUE(SameSecret("", ""));
  EXPECT_TRUE(SameSecret("abc", "abc"));
  EXPECT_FALSE(SameSecret("abc", "abd"));
  EXPECT_FALSE(SameSecret("xbc", "abc"));
  EXPECT_FALSE(SameSecret("abc", "abcd"));
}

/// What `read` returns in a process of another user.
template <typename Read>
int AsNobody(Read read) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65'534;
    if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(99);
    ::_exit(read());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(TokenFileTest, OtherUsersReadItNotAndRootReadsTheirs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  TempDir folder;
  const std::string path = folder.File("token");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string token, LoadOrMakeToken(path));
  const auto code_of_load = [&path] { return static_cast<int>(LoadToken(path).status().code()); };
  EXPECT_EQ(AsNobody(code_of_load), static_cast<int>(absl::StatusCode::kPermissionDenied));
  ASSERT_EQ(::chown(path.c_str(), 65'534, 65'534), 0);
  EXPECT_EQ(AsNobody(code_of_load), 0);
  EXPECT_EQ(LoadToken(path).value(), token);
  EXPECT_THAT(LoadOrMakeToken(path),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("belongs to another user")))
      << "who relies on it must be its owner";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_THAT(LoadOrMakeToken(path),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("belongs to another user")))
      << "what is not ours is left alone";
  EXPECT_EQ(AsNobody([&path] { return LoadOrMakeToken(path).ok() ? 0 : 1; }), 0);
  EXPECT_EQ(ModeOf(path), 0600u);
  ASSERT_EQ(::chmod(path.c_str(), 0200), 0);
  EXPECT_EQ(AsNobody([&path] { return LoadOrMakeToken(path).ok() ? 0 : 1; }), 0)
      << "its owner cannot read it either, and makes another";
}

}  // namespace
}  // namespace muster
