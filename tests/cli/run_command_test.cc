#include "cli/run_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "scaler/launcher/pidfd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The real executable, with a stand-in for master and servers, real signals and real exit codes.
namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDir;

constexpr int kPatienceMs = 60'000;  // only a failing test waits so long

/// A started `muster`.
class Program {
 public:
  Program(const std::vector<std::string>& arguments, const std::string& folder)
      : out_(folder + "/stdout"), err_(folder + "/stderr") {
    std::vector<char*> argv = {const_cast<char*>(MUSTER_PROGRAM)};
    for (const std::string& text : arguments) argv.push_back(const_cast<char*>(text.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(::open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
      ::dup2(::open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDERR_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(99);
    }
    pidfd_ = ::pidfd_open(pid_, 0);
  }
  ~Program() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      Wait();
    }
    ::close(pidfd_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) { ::kill(pid_, signal); }
  /// The exit code, or minus the signal.
  int Wait() {
    pollfd ended = {pidfd_, POLLIN, 0};
    if (::poll(&ended, 1, kPatienceMs) != 1) ADD_FAILURE() << "did not end: " << err();
    if (::poll(&ended, 1, 0) != 1) ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string out() const { return ReadFile(out_, 1 << 20).value_or(""); }
  std::string err() const { return ReadFile(err_, 1 << 20).value_or(""); }

 private:
  std::string out_;
  std::string err_;
  pid_t pid_ = -1;
  int pidfd_ = -1;
};

class RunCommandTest : public ::testing::Test {
 protected:
  RunCommandTest() { Write("data.csv", "1,2\n3,4\n"); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.File(name)) << text;
  }
  std::string Read(const std::string& name) {
    return ReadFile(folder_.File(name), 1 << 20).value_or("");
  }
  /// A job whose worker runs this script.
  void WriteJob(const std::string& script, const std::string& more = "") {
    Write("trainer.sh", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_.File("trainer.sh"), std::filesystem::perms::owner_all);
    Write("job.yaml", fmt::format(R"(apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: demo}}
spec:
  seed: 7
  stateDirectory: state
  datasets:
    - {{name: train, files: [data.csv], minibatchSize: 16, minibatchesPerShard: 4}}
  replicaSpecs:
    ps: {{replicas: 1}}
    worker: {{replicas: 1, command: [./trainer.sh]}}
{})",
                                  more));
  }
  std::vector<std::string> RunArguments(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"run", folder_.File("job.yaml"), "--node-program",
                                          MUSTER_FAKE_NODE};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// Another verb, to its end; its output is in `query`.
  int Query(const std::vector<std::string>& arguments, std::string* out) {
    std::filesystem::create_directories(folder_.File("query"));
    Program program(arguments, folder_.File("query"));
    const int code = program.Wait();
    *out = program.out() + program.err();
    return code;
  }
  static bool Eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < kPatienceMs / 20; ++i) {
      if (condition()) return true;
      ::poll(nullptr, 0, 20);
    }
    return false;
  }
  bool Reported(const std::string& line) {
    return Eventually([&] { return Read("reports").find(line) != std::string::npos; });
  }
  /// Pids that the worker wrote into the file `pids`, each held by a pidfd.
  std::vector<int> HoldPids(size_t count) {
    std::vector<int> held;
    EXPECT_TRUE(Eventually([&] {
      const std::string text = Read("pids");
      return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) >= count;
    }));
    std::ifstream file(folder_.File("pids"));
    pid_t pid = 0;
    while (file >> pid) held.push_back(::pidfd_open(pid, 0));
    return held;
  }
  static void ExpectGone(const std::vector<int>& pidfds) {
    for (int fd : pidfds) {
      if (fd < 0) continue;
      pollfd ended = {fd, POLLIN, 0};
      EXPECT_EQ(::poll(&ended, 1, kPatienceMs), 1);
      ::close(fd);
    }
  }
  /// The pid of a node as the supervisor reports it.
  pid_t PidOf(const std::string& node) {
    std::string out;
    EXPECT_EQ(Query({"nodes", folder_.File("job.yaml"), "--output", "json"}, &out), 0) << out;
    const nlohmann::json json = nlohmann::json::parse(out, nullptr, false);
    for (const nlohmann::json& entry : json.value("nodes", nlohmann::json::array())) {
      if (entry["name"] == node) return entry["pid"].get<pid_t>();
    }
    ADD_FAILURE() << "no node " << node << " in " << out;
    return 0;
  }
  nlohmann::json Summary() {
    return nlohmann::json::parse(Read("state/summary.json"), nullptr, false);
  }

  TempDir folder_;
};

constexpr char kWaitForSuccess[] = "while [ ! -e succeed ]; do sleep 0.05; done";

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
  EXPECT_EQ(Summary()["datasets"][0]["epochs"][0]["committed"], 100);
  EXPECT_EQ(Summary()["redelivered_minibatches"], 3);
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
  std::vector<int> pidfds = HoldPids(4);
  ASSERT_TRUE(Reported("worker-0 started"));
  ASSERT_TRUE(Reported("ps-0 started"));
  for (const char* node : {"master", "ps-0", "worker-0"}) {
    pidfds.push_back(::pidfd_open(PidOf(node), 0));
  }
  run.Signal(SIGKILL);
  EXPECT_EQ(run.Wait(), -SIGKILL);
  ExpectGone(pidfds);
  // And the state directory is free for the next run.
  Write("succeed", "");
  WriteJob("exit 0");
  Program again(RunArguments(), folder_.path());
  EXPECT_EQ(again.Wait(), 0) << again.err();
}

TEST_F(RunCommandTest, CrashLoopNamesTheNodeItsExitAndItsLastLines) {
  WriteJob("echo cannot load the model; exit 3",
           "  restarts: {crashLoopExits: 3, backoffInitial: 10ms}\n");
  Program run(RunArguments(), folder_.path());
  EXPECT_EQ(run.Wait(), 1);
  EXPECT_THAT(run.out(),
              AllOf(HasSubstr("worker-0 ended 3 times"), HasSubstr("exit 3"),
                    HasSubstr("cannot load the model"), HasSubstr("muster logs worker-0")));
  EXPECT_THAT(run.err(), AllOf(HasSubstr("giving up: worker-0 ended 3 times"),
                               Not(HasSubstr("muster logs worker-0"))))
      << "the summary says it";
  EXPECT_EQ(Summary()["state"], "failed");
  EXPECT_EQ(Summary()["restarts"]["worker"], 2);
  EXPECT_THAT(Read("reports"), HasSubstr("worker-0 exited signal=0 code=3"));
}

TEST_F(RunCommandTest, SigtermDrains) {
  WriteJob("sleep 1000");
  // Who wants no progress is answered all the same.
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
  const std::vector<int> pidfds = HoldPids(2);
  ASSERT_TRUE(Reported("worker-0 started"));
  run.Signal(SIGINT);
  ASSERT_TRUE(Eventually([&] { return run.err().find("draining") != std::string::npos; }));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 3);
  EXPECT_EQ(Summary()["state"], "stopped");
  ExpectGone(pidfds);
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

TEST_F(RunCommandTest, KilledNodesComeBackAndTheMasterHearsOfItsOwnDeath) {
  WriteJob(kWaitForSuccess);
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("worker-0 started"));
  ASSERT_TRUE(Reported("ps-0 started"));
  ::kill(PidOf("ps-0"), SIGKILL);
  EXPECT_TRUE(Reported("ps-0 exited signal=9"));
  EXPECT_TRUE(Reported("ps-0 started signal=0 code=0 token=0 restarts=1"));
  ::kill(PidOf("master"), SIGKILL);
  EXPECT_TRUE(Reported("master exited signal=9"));
  EXPECT_TRUE(Reported("master started signal=0 code=0 token=0 restarts=1"));
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_EQ(Summary()["restarts"]["master"], 1);
  EXPECT_EQ(Summary()["restarts"]["ps"], 1);
}

TEST_F(RunCommandTest, LostServerIsKilledAndStartedAgain) {
  WriteJob(kWaitForSuccess);
  Program run(RunArguments(), folder_.path());
  ASSERT_TRUE(Reported("ps-0 started"));
  Write("lost", "");
  ASSERT_TRUE(Reported("ps-0 exited signal=9"));
  std::filesystem::remove(folder_.File("lost"));
  EXPECT_TRUE(Reported("ps-0 started signal=0 code=0 token=0 restarts=1"));
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
}

TEST_F(RunCommandTest, CrashIsChargedToTheShardInTheSlotFile) {
  // magic, incarnation, token 77, 5 minibatches, not ended; little-endian.
  WriteJob(
      "if [ $MUSTER_START = 1 ]; then printf "
      "'LSRETSUM\\1\\0\\0\\0\\0\\0\\0\\0\\115\\0\\0\\0"
      "\\0\\0\\0\\0\\5\\0\\0\\0\\0\\0\\0\\0' > $MUSTER_SLOT_FILE; kill -SEGV $$; fi; " +
      std::string(kWaitForSuccess));
  Program run(RunArguments(), folder_.path());
  EXPECT_TRUE(Reported("worker-0 exited signal=11 code=0 token=77"));
  EXPECT_TRUE(Reported("worker-0 started signal=0 code=0 token=0 restarts=1"));
  Write("succeed", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
}

TEST_F(RunCommandTest, DryRunStartsNothing) {
  WriteJob("exit 1");
  Program run(RunArguments({"--dry-run"}), folder_.path());
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(run.out(), AllOf(HasSubstr("worker-0"), HasSubstr("trainer.sh"),
                               HasSubstr("about 2 records in 1 shards"), HasSubstr("data.csv")));
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
  EXPECT_EQ(nlohmann::json::parse(out, nullptr, false)["datasets"][0]["epochs"][0]["done"], 40);
  EXPECT_EQ(Query({"status", "--state-dir", folder_.File("state")}, &out), 0);
  EXPECT_THAT(out, AllOf(HasSubstr("demo: running"), HasSubstr("worker-0")));
  EXPECT_EQ(Query({"shards", job, "--state", "failed"}, &out), 0);
  EXPECT_THAT(out, AllOf(HasSubstr("0/1/17"), HasSubstr("SIGSEGV")));
  EXPECT_EQ(Query({"shards", job, "--retry"}, &out), 0);
  EXPECT_THAT(out, HasSubstr("99 shards"));
  EXPECT_EQ(Query({"shards", job, "--retry", "0/1/17", "0/1/18"}, &out), 0);
  EXPECT_THAT(out, HasSubstr("2 shards"));
  EXPECT_EQ(Query({"shards", job, "--retry", "seventeen"}, &out), 2);
  EXPECT_EQ(Query({"events", job, "--output", "json"}, &out), 0);
  EXPECT_EQ(nlohmann::json::parse(out, nullptr, false)["kind"], "job-started");
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
  EXPECT_EQ(Query({"status", "--master", "127.0.0.1:1"}, &out), 5);
  EXPECT_EQ(Query({"bogus"}, &out), 2);
  EXPECT_EQ(Query({"run"}, &out), 2);
  EXPECT_EQ(Query({"run", "--help"}, &out), 0);
  EXPECT_THAT(out, HasSubstr("Examples:"));
  EXPECT_EQ(Query({"--version"}, &out), 0);
}

}  // namespace
}  // namespace muster
