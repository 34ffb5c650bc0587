#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/file.h"
#include "tests/support/temp_dir.h"

/// The real executable, with a stand-in for master and servers, real signals and real exit codes.
namespace muster {

using testing::TempDir;

inline constexpr int kPatienceMs = 60'000;  // only a failing test waits so long

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
    process_ = OpenProcess(pid_);
  }
  ~Program() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      Wait();
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) { ::kill(pid_, signal); }
  /// The exit code, or minus the signal.
  int Wait(int patience_ms = kPatienceMs) {
    pollfd ended = {process_.get(), POLLIN, 0};
    if (::poll(&ended, 1, patience_ms) != 1) ADD_FAILURE() << "did not end: " << err();
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
  OwnedFd process_;
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
  std::vector<OwnedFd> HoldPids(size_t count) {
    std::vector<OwnedFd> held;
    EXPECT_TRUE(Eventually([&] {
      const std::string text = Read("pids");
      return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) >= count;
    }));
    std::ifstream file(folder_.File("pids"));
    pid_t pid = 0;
    while (file >> pid) held.push_back(OpenProcess(pid));
    return held;
  }
  static void ExpectGone(const std::vector<OwnedFd>& processes) {
    for (const OwnedFd& process : processes) {
      if (process.get() < 0) continue;
      pollfd ended = {process.get(), POLLIN, 0};
      EXPECT_EQ(::poll(&ended, 1, kPatienceMs), 1);
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

inline constexpr char kWaitForSuccess[] = "while [ ! -e succeed ]; do sleep 0.05; done";

}  // namespace muster
