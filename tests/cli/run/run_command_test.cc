#include "cli/run/run_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <map>

#include "tests/cli/run/run_command_fixture.h"
#include "tests/support/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(RunCommandTest, SucceedsAndWritesTheSummary) {
  WriteJob(std::string("echo hello; ") + kWaitForSuccess);
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  EXPECT_TRUE(Reported("ps-0 started"));
  EXPECT_TRUE(Reported("master started"));
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("demo: succeeded"));
  EXPECT_EQ(Summary()["state"], "succeeded");
  EXPECT_EQ(Summary()["datasets"][0]["epochs"][0]["records_committed"], 100);
  EXPECT_EQ(Summary()["counters"]["redelivered_minibatches"], 3);
  EXPECT_EQ(Read("state/job.yaml"), Read("job.yaml"));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("state/run/endpoint.json")));
  std::string out;
  EXPECT_EQ(Query({"logs", "worker-0", folder_.File("job.yaml")}, &out), 0);
  EXPECT_THAT(out, HasSubstr("hello"));
}

TEST_F(RunCommandTest, NodesAndQuestionsNameTheIdOfTheJob) {
  WriteJob(std::string("echo id $MUSTER_JOB_ID; ") + kWaitForSuccess);
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  const nlohmann::json endpoint =
      nlohmann::json::parse(Read("state/run/endpoint.json"), nullptr, false);
  const std::string id = endpoint.value("job_id", "");
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(endpoint.value("job", ""), "demo");
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  std::string out;
  EXPECT_EQ(Query({"logs", "worker-0", folder_.File("job.yaml")}, &out), 0);
  EXPECT_THAT(out, HasSubstr("id " + id));
}

TEST_F(RunCommandTest, JsonSummaryIsAllOfStdout) {
  WriteJob(kWaitForSuccess);
  Write("succeed", "");
  Program run(RunArguments({"--output", "json", "--no-progress"}), folder_.path());
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_EQ(nlohmann::json::parse(run.out(), nullptr, false), Summary());
  EXPECT_EQ(run.err(), "");
}

TEST_F(RunCommandTest, SigkillLeavesNoProcess) {
  WriteJob(
      "echo $$ >> pids; sleep 1000 & echo $! >> pids; setsid sh -c 'echo $$ >> pids; sleep 1000 & "
      "echo $! >> pids; wait' & wait");
  Program run(RunArguments(), folder_.path());
  std::vector<OwnedFd> processes = HoldPids(4);
  ASSERT_TRUE(Reported("worker-0 started"));
  ASSERT_TRUE(Reported("ps-0 started"));
  for (const char* node : {"master", "scaler", "ps-0", "worker-0"}) {
    processes.push_back(OpenProcess(PidOf(node)));
  }
  run.Signal(SIGKILL);
  EXPECT_EQ(run.Wait(), -SIGKILL);
  ExpectGone(processes);
  // And the state directory is free for the next run.
  Write("succeed", "");
  WriteJob("exit 0");
  Program again(RunArguments(), folder_.path());
  EXPECT_EQ(again.Wait(), 0) << again.err();
}

TEST_F(RunCommandTest, SigtermDrains) {
  WriteJob("sleep 1000");
  // A user who wants no progress gets answers, too.
  Program run(RunArguments({"--no-progress"}), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  // The worker of this test does not know of drains: it ends when the run stops it.
  run.Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return run.err().find("draining") != std::string::npos; }));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 3) << run.err();
}

TEST_F(RunCommandTest, DrainedByTheVerb) {
  WriteJob("exec sleep 1000");
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  std::string out;
  EXPECT_EQ(Query({"drain", folder_.File("job.yaml")}, &out), 0) << out;
  ASSERT_TRUE(Eventually([&] { return run.err().find("drained") != std::string::npos; }));
  ::kill(PidOf("worker-0"), SIGTERM);
  EXPECT_EQ(run.Wait(), 3);
  EXPECT_EQ(Summary()["state"], "drained");
}

TEST_F(RunCommandTest, SecondSignalStopsAtOnce) {
  Write("slow-drain", "");
  WriteJob("trap '' TERM; echo $$ >> pids; sleep 1000 & echo $! >> pids; wait; wait");
  Program run(RunArguments(), folder_.path());
  const std::vector<OwnedFd> processes = HoldPids(2);
  ASSERT_TRUE(Reported("worker-0 started"));
  run.Signal(SIGINT);
  ASSERT_TRUE(Eventually([&] { return run.err().find("draining") != std::string::npos; }));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 3);
  EXPECT_EQ(Summary()["state"], "stopped");
  ExpectGone(processes);
}

TEST_F(RunCommandTest, Cancelled) {
  WriteJob("exec sleep 1000");
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  const pid_t worker = PidOf("worker-0");
  std::string out;
  EXPECT_EQ(Query({"cancel", folder_.File("job.yaml"), "--reason", "wrong data"}, &out), 0) << out;
  ASSERT_TRUE(Eventually([&] { return run.err().find("cancelled") != std::string::npos; }));
  ::kill(worker, SIGTERM);
  EXPECT_EQ(run.Wait(), 4);
  EXPECT_EQ(Summary()["reason"], "wrong data");
}

TEST_F(RunCommandTest, DryRunStartsNothing) {
  WriteJob("exit 1");
  Program run(RunArguments({"--dry-run"}), folder_.path());
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(run.out(), AllOf(HasSubstr("worker-0"), HasSubstr("trainer.sh"),
                               HasSubstr("about 2 records in 1 shard"), HasSubstr("data.csv")));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("state")));
}

TEST_F(RunCommandTest, BadInputIsRefusedBeforeAnythingStarts) {
  struct Case {
    const char* what;
    std::function<void()> spoil;
    const char* message;
  };
  const Case cases[] = {
      {"unknown field", [&] { Write("job.yaml", Read("job.yaml") + "  sede: 8\n"); }, "sede"},
      {"trainer missing", [&] { std::filesystem::remove(folder_.File("trainer.sh")); },
       "trainer.sh does not exist"},
      {"trainer not executable",
       [&] {
         std::filesystem::permissions(folder_.File("trainer.sh"),
                                      std::filesystem::perms::owner_read);
       },
       "chmod +x"},
      {"data missing", [&] { std::filesystem::remove(folder_.File("data.csv")); },
       "no file matches"},
      {"state directory not usable", [&] { Write("state", "a file"); }, "spec.stateDirectory"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Write("data.csv", "1,2\n");
    WriteJob("exit 0");
    c.spoil();
    Program run(RunArguments(), folder_.path());
    EXPECT_EQ(run.Wait(), 2);
    EXPECT_THAT(run.err(), HasSubstr(c.message));
    EXPECT_EQ(Read("reports"), "");
    std::filesystem::remove_all(folder_.File("state"));
  }
}

TEST_F(RunCommandTest, TakenPort) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string taken = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
  WriteJob("exit 0", fmt::format("  master: {{address: \"{}\"}}\n", taken));
  Program run(RunArguments(), folder_.path());
  EXPECT_EQ(run.Wait(), 2);
  EXPECT_THAT(run.err(), AllOf(HasSubstr(taken), HasSubstr("taken")));
  ::close(fd);
}

TEST_F(RunCommandTest, SecondRunOnTheSameStateDirectoryNamesTheFirst) {
  WriteJob(kWaitForSuccess);
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  std::string out;
  EXPECT_EQ(Query(RunArguments(), &out), 2);
  EXPECT_THAT(out, HasSubstr(fmt::format("pid {}", run.pid())));
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0);
}

TEST_F(RunCommandTest, StateDirectoryOfAnotherJob) {
  WriteJob("exit 0");
  std::filesystem::create_directories(folder_.File("state/journal"));
  std::string other = Read("job.yaml");
  other.replace(other.find("name: demo"), 10, "name: flights");
  Write("state/job.yaml", other);
  Program run(RunArguments(), folder_.path());
  EXPECT_EQ(run.Wait(), 2);
  EXPECT_THAT(run.err(), AllOf(HasSubstr("'flights'"), HasSubstr("stateDirectory")));
  other = Read("job.yaml");
  other.replace(other.find("seed: 7"), 7, "seed: 8");
  Write("state/job.yaml", other);
  Program changed(RunArguments(), folder_.path());
  EXPECT_EQ(changed.Wait(), 2);
  EXPECT_THAT(changed.err(), HasSubstr("spec.seed: was 8, is now 7"));
}

TEST_F(RunCommandTest, MasterThatRefusesTheDataIsStartedOnce) {
  Write("refuse", "");
  WriteJob("exit 0");
  Program run(RunArguments(), folder_.path());
  EXPECT_EQ(run.Wait(), 2);
  EXPECT_THAT(run.out(), HasSubstr("dataset train: no data"));
  EXPECT_EQ(Summary()["restarts"]["master"], 0);
}

TEST_F(RunCommandTest, QueriesOfARunningJob) {
  WriteJob(kWaitForSuccess);
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  const std::string job = folder_.File("job.yaml");
  std::string out;
  EXPECT_EQ(Query({"status", job, "--output", "json"}, &out), 0);
  EXPECT_EQ(nlohmann::json::parse(out, nullptr, false)["datasets"][0]["epochs"][0]["records_done"],
            40);
  EXPECT_EQ(Query({"status", "--state-dir", folder_.File("state")}, &out), 0);
  EXPECT_THAT(out, AllOf(HasSubstr("demo: running"), HasSubstr("worker-0")));
  EXPECT_EQ(Query({"shards", job, "--state", "failed"}, &out), 0);
  EXPECT_THAT(out, AllOf(HasSubstr("0/1/17"), HasSubstr("SIGSEGV")));
  EXPECT_EQ(Query({"shards", job, "--retry"}, &out), 0);
  EXPECT_THAT(out, HasSubstr("1 shard will be tried again"));
  EXPECT_EQ(Query({"shards", job, "--retry", "0/1/17", "0/1/18"}, &out), 0);
  EXPECT_THAT(out, HasSubstr("2 shards"));
  EXPECT_EQ(Query({"shards", job, "--retry", "seventeen"}, &out), 2);
  EXPECT_EQ(Query({"events", job, "--output", "json"}, &out), 0);
  EXPECT_EQ(nlohmann::json::parse(out.substr(0, out.find('\n')), nullptr, false)["kind"],
            "job-started");
  EXPECT_EQ(Query({"logs", "worker-7", job}, &out), 2);
  EXPECT_THAT(out, HasSubstr("worker-0"));
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0);
}

TEST_F(RunCommandTest, ExitCodesWithoutAJob) {
  WriteJob("exit 0");
  std::string out;
  EXPECT_EQ(Query({"status", folder_.File("job.yaml")}, &out), 5);
  EXPECT_THAT(out, HasSubstr("muster run"));
  EXPECT_EQ(Query({"status", "--state-dir", folder_.path(), "--master", "127.0.0.1:1"}, &out), 5);
  EXPECT_EQ(Query({"bogus"}, &out), 2);
  EXPECT_EQ(Query({"run"}, &out), 2);
  EXPECT_EQ(Query({"run", "--help"}, &out), 0);
  EXPECT_THAT(out, HasSubstr("Examples:"));
  EXPECT_EQ(Query({"--version"}, &out), 0);
}

TEST_F(RunCommandTest, ARunThatEndsWithAnotherProcessIsRefused) {
  WriteJob("exit 0");
  std::string out;
  EXPECT_EQ(Query(RunArguments({"--end-with", std::to_string(::getppid())}), &out), 2);
  EXPECT_THAT(out, HasSubstr(std::to_string(::getpid()) + ", and not"));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("state")));
}

/// The program waits for the contents of a FIFO, here without end: a process that opened it to
/// write knows that it reads.
TEST_F(RunCommandTest, ASignalWhileFilesAreReadEndsTheCommandAtOnce) {
  ASSERT_EQ(::mkfifo(folder_.File("job.yaml").c_str(), 0600), 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    for (const bool dry_run : {false, true}) {
      Program run(RunArguments(dry_run ? std::vector<std::string>{"--dry-run"}
                                       : std::vector<std::string>{}),
                  folder_.path());
      const int fd = ::open(folder_.File("job.yaml").c_str(), O_WRONLY | O_CLOEXEC);
      ASSERT_GE(fd, 0);
      run.Signal(signal);
      EXPECT_EQ(run.Wait(), 3) << run.err();
      EXPECT_THAT(run.err(), HasSubstr("before the job was started"));
      EXPECT_FALSE(std::filesystem::exists(folder_.File("state")));
      ::close(fd);
    }
  }
}

TEST_F(RunCommandTest, ASignalBeforeTheRunInAPodLetsItsJobTryAgain) {
  const std::map<std::string, std::string> pod = {{"MUSTER_NAMESPACE", "default"},
                                                  {"MUSTER_JOB_ID", "j1"},
                                                  {"MUSTER_JOB_NAME", "demo"},
                                                  {"MUSTER_RUN_ID", "1-2"}};
  for (const auto& [name, value] : pod) ::setenv(name.c_str(), value.c_str(), 1);
  ASSERT_EQ(::mkfifo(folder_.File("job.yaml").c_str(), 0600), 0);
  Program run(RunArguments({"--in-cluster"}), folder_.path());
  for (const auto& [name, value] : pod) ::unsetenv(name.c_str());
  const int fd = ::open(folder_.File("job.yaml").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), 128 + SIGTERM) << run.err();
  ::close(fd);
}

}  // namespace
}  // namespace muster
