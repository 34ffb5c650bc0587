#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>

#include "host/exit_note.h"
#include "proto/messages/slot_file.h"
#include "tests/cli/run/run_command_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

/// The real executable as the entry point of a pod.
class NodeCommandTest : public RunCommandTest {
 protected:
  NodeCommandTest() {
    ::setenv("MUSTER_NAMESPACE", "default", 1);
    ::setenv("MUSTER_JOB_ID", "j1", 1);
    ::setenv("MUSTER_NODE", "worker-3", 1);
    ::setenv("MUSTER_START", "2", 1);
    ::setenv("FOLDER", folder_.path().c_str(), 1);
  }
  /// The pod of a worker that runs this script.
  std::vector<std::string> Arguments(const std::string& script) {
    WriteJob(script);
    Write("job.yaml", [this] {
      std::string text = Read("job.yaml");
      const std::string relative = "./trainer.sh";
      return text.replace(text.find(relative), relative.size(), folder_.File("trainer.sh"));
    }());
    return {"node",
            "--role",
            "worker",
            "--job",
            folder_.File("job.yaml"),
            "--directory",
            folder_.File("node"),
            "--plain-text",
            "--termination-log",
            folder_.File("note")};
  }
  NodeExited Note() {
    const absl::StatusOr<NodeExited> note = ParseExitNote(Read("note"));
    EXPECT_THAT(note.status(), testing::IsOk()) << Read("note");
    return note.value_or(NodeExited{});
  }
};

TEST_F(NodeCommandTest, TheCommandHasTheEnvironmentOfALocalNode) {
  Program node(Arguments("echo $MUSTER_MASTER $MUSTER_NODE $MUSTER_START $MUSTER_JOB_ID; exit 5"),
               folder_.path());
  EXPECT_EQ(node.Wait(), 5);
  EXPECT_THAT(node.out(), HasSubstr("demo-master.default.svc:7171 worker-3 2 j1\n"));
  EXPECT_EQ(Note().exit, (ExitStatus{.code = 5}));
  EXPECT_THAT(Note().last_words, HasSubstr("worker-3 2 j1\n"));
  EXPECT_EQ(Note().slot, std::nullopt);
}

TEST_F(NodeCommandTest, TheNoteOfACrashNamesTheShard) {
  // magic, incarnation, one loop with token 77 and 5 minibatches, zeros; little-endian.
  Program node(Arguments(fmt::format("{{ printf "
                                     "'MSRETSUM\\1\\0\\0\\0\\0\\0\\0\\0\\115\\0\\0\\0"
                                     "\\0\\0\\0\\0\\5\\0\\0\\0\\0\\0\\0\\0'; head -c {} /dev/zero; "
                                     "}} > $MUSTER_SLOT_FILE; kill -SEGV $$",
                                     sizeof(SlotFile) - 32)),
               folder_.path());
  EXPECT_EQ(node.Wait(), 128 + SIGSEGV);
  const NodeExited note = Note();
  EXPECT_EQ(note.exit, (ExitStatus{.signal = SIGSEGV}));
  ASSERT_TRUE(note.slot.has_value());
  ASSERT_TRUE(note.slot->Alone().has_value());
  EXPECT_EQ(note.slot->Alone()->token.value(), 77u);
  EXPECT_EQ(note.slot->Alone()->minibatches_started, 5u);
}

TEST_F(NodeCommandTest, NothingThatTheCommandStartedOutlivesIt) {
  Program node(Arguments("setsid sleep 1000 & echo $! >> $FOLDER/pids; exit 0"), folder_.path());
  EXPECT_EQ(node.Wait(), 0);
  ExpectGone(HoldPids(1));
}

TEST_F(NodeCommandTest, SigtermIsPassedOnAndGivenTime) {
  Program node(Arguments("trap 'echo leaving; while [ ! -e $FOLDER/go ]; do sleep 0.02; done; "
                         "exit 0' TERM; echo > $FOLDER/up; while true; do sleep 0.02; done"),
               folder_.path());
  ASSERT_TRUE(Eventually([&] { return !Read("up").empty(); }));
  node.Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return node.out().find("leaving") != std::string::npos; }));
  Write("go", "");
  EXPECT_EQ(node.Wait(), 0);
  EXPECT_EQ(Note().exit, ExitStatus{});
}

TEST_F(NodeCommandTest, WithoutAHandlerSigtermEndsIt) {
  Program node(Arguments("echo > $FOLDER/up; exec sleep 1000"), folder_.path());
  ASSERT_TRUE(Eventually([&] { return !Read("up").empty(); }));
  node.Signal(SIGTERM);
  EXPECT_EQ(node.Wait(), 128 + SIGTERM);
  EXPECT_EQ(Note().exit, (ExitStatus{.signal = SIGTERM}));
}

/// The program waits for the contents of a FIFO: it has begun, but not yet the command.
TEST_F(NodeCommandTest, ASigtermBeforeTheCommandBeginsIsNotLost) {
  const std::vector<std::string> arguments = Arguments("exec sleep 1000");
  const std::string job = Read("job.yaml");
  std::filesystem::remove(folder_.File("job.yaml"));
  ASSERT_EQ(::mkfifo(folder_.File("job.yaml").c_str(), 0600), 0);
  Program node(arguments, folder_.path());
  const int fd = ::open(folder_.File("job.yaml").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  node.Signal(SIGTERM);
  ::signal(SIGPIPE, SIG_IGN);  // only if it has ended
  EXPECT_EQ(::write(fd, job.data(), job.size()), static_cast<ssize_t>(job.size()));
  ::close(fd);
  ::signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(node.Wait(), 128 + SIGTERM) << node.err();
  EXPECT_EQ(Note().exit, (ExitStatus{.signal = SIGTERM}));
}

TEST_F(NodeCommandTest, WhatIsWrongIsInTheNote) {
  std::vector<std::string> arguments = Arguments("exit 0");
  std::filesystem::remove(folder_.File("trainer.sh"));
  Program missing(arguments, folder_.path());
  EXPECT_EQ(missing.Wait(), 127);
  EXPECT_THAT(Note().last_words, HasSubstr("trainer.sh"));
  EXPECT_EQ(Note().exit.code, 127);
  ::unsetenv("MUSTER_JOB_ID");
  Program outside(arguments, folder_.path());
  EXPECT_EQ(outside.Wait(), 2);
  EXPECT_THAT(outside.err(), HasSubstr("MUSTER_JOB_ID"));
}

}  // namespace
}  // namespace muster
