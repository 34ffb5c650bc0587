#include "cli/cluster/private_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/file.h"
#include "tests/support/status_matchers.h"

namespace muster::cluster {
namespace {

TEST(PrivateFolder, IsForItsUserAlone) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const auto folder, PrivateFolder::Make());
  struct stat mode{};
  ASSERT_EQ(::stat(folder->path().c_str(), &mode), 0);
  EXPECT_EQ(mode.st_mode & 0777, 0700u);
}

TEST(PrivateFolder, GoesWithItsContents) {
  std::string path;
  {
    MUSTER_ASSERT_OK_AND_ASSIGN(const auto folder, PrivateFolder::Make());
    path = folder->path();
    ASSERT_THAT(MakeDirectories(path + "/tls"), testing::IsOk());
    ASSERT_THAT(WriteFileAtomically(path + "/tls/key", "x"), testing::IsOk());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PrivateFolder, GoesAlsoIfTheProcessIsKilled) {
  // The remover keeps the reading end of nothing of ours, but it is a child of the killed process:
  // the end of its life is seen by a pipe that both inherit.
  std::array<int, 2> said{};
  std::array<int, 2> lives{};
  ASSERT_EQ(::pipe(said.data()), 0);
  ASSERT_EQ(::pipe(lives.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(lives[0]);
    const auto folder = PrivateFolder::Make();
    if (!folder.ok()) ::_exit(1);
    const std::string& path = (*folder)->path();
    [[maybe_unused]] const ssize_t written = ::write(said[1], path.data(), path.size());
    ::pause();
  }
  ::close(lives[1]);
  std::array<char, 200> text{};
  const ssize_t got = ::read(said[0], text.data(), text.size());
  ASSERT_GT(got, 0);
  const std::string path(text.data(), static_cast<size_t>(got));
  EXPECT_TRUE(std::filesystem::exists(path));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  char ignored = 0;
  EXPECT_EQ(::read(lives[0], &ignored, 1), 0);
  EXPECT_FALSE(std::filesystem::exists(path));
  for (const int fd : {said[0], said[1], lives[0]}) ::close(fd);
}

}  // namespace
}  // namespace muster::cluster
