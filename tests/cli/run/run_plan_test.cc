#include "cli/run/run_plan.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/status.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using ::testing::StartsWith;
using testing::StatusIs;
using testing::TempDir;

class RunPlanTest : public ::testing::Test {
 protected:
  void WriteProgram(const std::string& name, std::filesystem::perms permissions) {
    ASSERT_THAT(WriteFileAtomically(folder_.File(name), "#!/bin/sh\n"), IsOk());
    std::filesystem::permissions(folder_.File(name), permissions);
  }
  TempDir folder_;
};

TEST_F(RunPlanTest, FindsProgramsBesideTheJobFileAndInPath) {
  WriteProgram("trainer", std::filesystem::perms::owner_all);
  MUSTER_ASSERT_OK_AND_ASSIGN(
      std::string beside, FindProgram("./trainer", {.base_directory = folder_.path(), .path = ""}));
  EXPECT_EQ(beside, folder_.File("trainer"));
  MUSTER_ASSERT_OK_AND_ASSIGN(
      std::string found,
      FindProgram("trainer", {.base_directory = "/", .path = "/none::" + folder_.path()}));
  EXPECT_EQ(found, folder_.File("trainer"));
}

TEST_F(RunPlanTest, SaysWhereItLookedForAProgram) {
  EXPECT_THAT(FindProgram("./trainer", {.base_directory = folder_.path(), .path = ""}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder_.File("trainer"))));
  EXPECT_THAT(
      FindProgram("trainer", {.base_directory = folder_.path(), .path = "/a:/b"}),
      StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("/a:/b"), HasSubstr("./trainer"))));
  WriteProgram("data", std::filesystem::perms::owner_read);
  EXPECT_THAT(FindProgram("./data", {.base_directory = folder_.path(), .path = ""}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("chmod +x")));
  EXPECT_THAT(FindProgram("./", {.base_directory = folder_.path(), .path = ""}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("not a file")));
}

TEST_F(RunPlanTest, MasterPortIsBelowTheEphemeralRange) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    MUSTER_ASSERT_OK_AND_ASSIGN(std::string address, ChooseMasterAddress("127.0.0.1:0", seed));
    ASSERT_THAT(address, StartsWith("127.0.0.1:"));
    const int port = std::stoi(address.substr(10));
    EXPECT_GE(port, 20'000);
    EXPECT_LT(port, 32'000);
  }
}

TEST_F(RunPlanTest, TheMasterListensOnTheHostThatIsWanted) {
  const auto begins = [](const std::string& wanted, const std::string& host) {
    MUSTER_ASSERT_OK_AND_ASSIGN(std::string address, ChooseMasterAddress(wanted, 3));
    EXPECT_THAT(address, StartsWith(host));
  };
  begins("127.0.0.7:0", "127.0.0.7:2");
  begins("localhost:0", "127.0.0.1:2");
  // Not every machine has IPv6.
  const absl::StatusOr<std::string> v6 = ChooseMasterAddress("[::1]:0", 3);
  EXPECT_THAT(v6.ok() ? *v6 : std::string(Message(v6.status())), HasSubstr("[::1]"));
  EXPECT_THAT(ChooseMasterAddress("127.1:0", 3),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'127.1' is not a host")));
}

/// A listener of its own, on a port that the kernel chooses.
class Listener {
 public:
  explicit Listener(const char* host) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, host, &address.sin_addr);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { ::close(fd_); }
  int port() const { return port_; }

 private:
  int fd_;
  int port_ = 0;
};

TEST_F(RunPlanTest, APortIsTakenOnTheHostThatIsWantedOnly) {
  const Listener listener("127.0.0.7");
  const std::string taken = "127.0.0.7:" + std::to_string(listener.port());
  EXPECT_THAT(ChooseMasterAddress(taken, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(taken + " is taken")));
  const std::string free = "127.0.0.8:" + std::to_string(listener.port());
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string address, ChooseMasterAddress(free, 3));
  EXPECT_EQ(address, free);
}

// The master of a run that was killed may still be dying.
TEST_F(RunPlanTest, ATakenPortIsTriedAgain) {
  std::optional<Listener> listener("127.0.0.1");
  const int port = listener->port();
  const std::string wanted = "127.0.0.1:" + std::to_string(port);
  int calls = 0;
  EXPECT_THAT(ChooseMasterAddress(wanted, 3, [&] { return ++calls < 3; }),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is taken")));
  EXPECT_EQ(calls, 3);
  const auto end = [&] {
    listener.reset();
    return true;
  };
  MUSTER_ASSERT_OK_AND_ASSIGN(const std::string address, ChooseMasterAddress(wanted, 3, end));
  EXPECT_EQ(address, wanted);
  listener.emplace("127.0.0.1");
  MUSTER_ASSERT_OK_AND_ASSIGN(
      const uint16_t rest,
      ChooseRestPort(static_cast<uint32_t>(listener->port()), 3, "127.0.0.1:1", "127.0.0.1", end));
  EXPECT_FALSE(listener.has_value());
  EXPECT_NE(rest, 0);
}

TEST_F(RunPlanTest, RestPortsAreFreeAndNotTheMasters) {
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint16_t port, ChooseRestPort(0, 3, "127.0.0.1:1"));
  EXPECT_GE(port, 20'000);
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint16_t other,
                              ChooseRestPort(0, 3, fmt::format("127.0.0.1:{}", port)));
  EXPECT_NE(other, port) << "the same seed finds the same port first";
  MUSTER_ASSERT_OK_AND_ASSIGN(const uint16_t wanted, ChooseRestPort(port, 3, "127.0.0.1:1"));
  EXPECT_EQ(wanted, port);
  EXPECT_THAT(ChooseRestPort(port, 3, fmt::format("127.0.0.1:{}", port)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec.scaler.port")));
}

TEST_F(RunPlanTest, CommandsAndDescriptions) {
  RunPlan plan;
  plan.job.name = "demo";
  plan.job.state_directory = "/s";
  plan.job.ps.replicas = 1;
  plan.job.worker.replicas = 2;
  plan.job.worker.command = {"./trainer", "--fast"};
  plan.job.worker.env = {{"A", "1"}, {"MUSTER_NODE", "mine"}};
  plan.base_directory = "/base";
  plan.program = "/bin/muster";
  plan.master_address = "127.0.0.1:20001";
  plan.run_id = "r1";
  plan.trainer = "/base/trainer";
  plan.master_flags = {"--retry-failed"};
  const NodeCommand worker = CommandOf(plan, "worker-1", NodeRole::kWorker);
  EXPECT_THAT(worker.command, ElementsAre("/base/trainer", "--fast"));
  EXPECT_EQ(worker.environment.at("A"), "1");
  EXPECT_EQ(worker.environment.at("MUSTER_NODE"), "worker-1");
  EXPECT_EQ(worker.environment.at("MUSTER_MASTER"), "127.0.0.1:20001");
  EXPECT_EQ(worker.environment.at("MUSTER_SLOT_FILE"), "/s/run/worker-1.slot");
  EXPECT_EQ(worker.working_directory, "/base");
  EXPECT_THAT(
      CommandOf(plan, "master", NodeRole::kMaster).command,
      ElementsAre("/bin/muster", "master", "--job", "/s/job.yaml", "--base-directory", "/base",
                  "--listen", "127.0.0.1:20001", "--run-id", "r1", "--retry-failed"));
  EXPECT_EQ(worker.slot_file, "/s/run/worker-1.slot");
  EXPECT_EQ(CommandOf(plan, "ps-0", NodeRole::kServer).slot_file, "");
  plan.job.servers.threads = 2;
  plan.job.drain_timeout = std::chrono::milliseconds(30'500);
  EXPECT_THAT(
      CommandOf(plan, "ps-0", NodeRole::kServer).command,
      ElementsAre("/bin/muster", "ps", "--name", "ps-0", "--master", "127.0.0.1:20001",
                  "--socket-directory", "/s/run", "--threads", "2", "--drain-timeout", "31"));
  plan.scaler_program = "/bin/real";
  plan.rest_port = 20002;
  const NodeCommand scaler = CommandOf(plan, "scaler", NodeRole::kScaler);
  EXPECT_THAT(
      scaler.command,
      ElementsAre("/bin/real", "scaler", "--job", "/s/job.yaml", "--base-directory", "/base",
                  "--master", "127.0.0.1:20001", "--run-id", "r1", "--trainer", "/base/trainer",
                  "--node-program", "/bin/muster", "--rest-port", "20002"));
  EXPECT_TRUE(scaler.keep_descendants);
  EXPECT_FALSE(worker.keep_descendants);
  EXPECT_EQ(worker.environment.count("MUSTER_JOB_ID"), 0u);
  plan.job_id = "id-1";
  EXPECT_EQ(CommandOf(plan, "worker-1", NodeRole::kWorker).environment.at("MUSTER_JOB_ID"), "id-1");
  for (const NodeRole role : {NodeRole::kMaster, NodeRole::kServer, NodeRole::kScaler}) {
    EXPECT_THAT(fmt::format("{}", fmt::join(CommandOf(plan, "ps-0", role).command, " ")),
                HasSubstr(" --job-id id-1"));
  }
  plan.job.ps.limits = {.cpu = 0.5, .memory_bytes = uint64_t{64} << 20};
  plan.job.ps.max.memory_bytes = uint64_t{1} << 30;
  plan.job.worker.replicas_max = 4;
  plan.job.budget.cpu = 6;
  EXPECT_THAT(DescribePlan(plan),
              AllOf(HasSubstr("  ps         0.5 cores, 64 MiB each, up to any cores, 1 GiB\n"),
                    HasSubstr("  worker     any cores, any memory each; 2 to 4 workers\n"),
                    HasSubstr("  together   6 cores, any memory\n")));
  EXPECT_THAT(DescribePlan(plan), AllOf(HasSubstr("worker-1"), HasSubstr("/base/trainer --fast")));
  const nlohmann::json json = nlohmann::json::parse(PlanToJson(plan));
  EXPECT_EQ(json["nodes"].size(), 5u);
  EXPECT_EQ(json["nodes"][1]["name"], "scaler");
  EXPECT_EQ(json["nodes"][4]["name"], "worker-1");
  EXPECT_EQ(json["nodes"][2]["limits"]["memory_bytes"], uint64_t{64} << 20);
  EXPECT_EQ(json["nodes"][4]["limits"]["cpus"], 0);
}

TEST_F(RunPlanTest, ServersThatJoinAreShownWithTheirCommand) {
  RunPlan plan;
  plan.job.worker.command = {"./trainer"};
  plan.master_address = "10.0.0.1:26500";
  plan.job.ps.replicas = 3;
  EXPECT_TRUE(JoinCommands(plan).empty());
  plan.job.servers_joined = 2;
  const std::map<std::string, std::string> commands = JoinCommands(plan);
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_THAT(commands.at("ps-1"), HasSubstr("muster join 10.0.0.1:26500 --role ps --name ps-1 "));
  EXPECT_THAT(commands.at("ps-2"), HasSubstr("--insecure"));
  plan.job.security.tls = TlsUse::kAlways;
  EXPECT_THAT(DescribePlan(plan),
              HasSubstr("  ps-2       joins from another machine: muster join"));
  EXPECT_THAT(DescribePlan(plan), HasSubstr("--tls tls"));
}

TEST_F(RunPlanTest, UnderTlsEveryNodeGetsTheFilesOfItsRole) {
  RunPlan plan;
  plan.job.worker.command = {"./trainer"};
  EXPECT_EQ(CommandOf(plan, "worker-1", NodeRole::kWorker).environment.count("MUSTER_CA_FILE"), 0u);
  EXPECT_THAT(DescribePlan(plan), Not(HasSubstr("TLS")));
  plan.job.state_directory = "/s";
  plan.certificates = "/s/tls";
  plan.job.security.tls = TlsUse::kAlways;
  const NodeCommand secure = CommandOf(plan, "worker-1", NodeRole::kWorker);
  EXPECT_EQ(secure.environment.at("MUSTER_CA_FILE"), "/s/tls/ca.crt");
  EXPECT_EQ(secure.environment.at("MUSTER_CERTIFICATE_FILE"), "/s/tls/worker.crt");
  EXPECT_EQ(secure.environment.at("MUSTER_KEY_FILE"), "/s/tls/worker.key");
  for (const NodeRole role : {NodeRole::kMaster, NodeRole::kServer, NodeRole::kScaler}) {
    EXPECT_THAT(fmt::format("{}", fmt::join(CommandOf(plan, "ps-0", role).command, " ")),
                HasSubstr(" --tls /s/tls"));
  }
  EXPECT_EQ(EndpointOf(plan).certificates, "/s/tls");
  EXPECT_THAT(DescribePlan(plan), HasSubstr("TLS 1.3, certificates in /s/tls\n"));
}

TEST_F(RunPlanTest, DatasetsAreShownAsTheirSourcesDescribeThem) {
  RunPlan plan;
  plan.job.worker.command = {"./trainer"};
  plan.datasets = {{.name = "train", .how = "train, 2 epochs", .what = "12 files"},
                   {.name = "clicks", .how = "train", .what = "topic t"}};
  plan.datasets[0].facts = {
      {"epochs", uint64_t{2}}, {"mode", "train"}, {"files", std::vector<std::string>{"a", "b"}}};
  for (int i = 0; i < 12; ++i) plan.datasets[0].parts.push_back(fmt::format("f{}", i));
  EXPECT_THAT(DescribePlan(plan),
              AllOf(HasSubstr("\ndatasets\n  train (train, 2 epochs): 12 files\n"
                              "    f0\n"),
                    HasSubstr("    f9\n    ... and 2 more\n"
                              "  clicks (train): topic t\nlimits\n")));
  const nlohmann::json json = nlohmann::json::parse(PlanToJson(plan));
  EXPECT_EQ(
      json["datasets"][0],
      nlohmann::json({{"name", "train"}, {"mode", "train"}, {"epochs", 2}, {"files", {"a", "b"}}}));
  EXPECT_EQ(json["datasets"][1], nlohmann::json({{"name", "clicks"}}));
}

}  // namespace
}  // namespace muster
