#include "scaler/service/scaler_main.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/file.h"
#include "master/service/master_server.h"
#include "scaler/admin/admin_client.h"
#include "scaler/launcher/process_tree.h"
#include "scaler/service/plan_file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace muster::scaler {
namespace {

using ::muster::testing::IsOk;
using ::muster::testing::StatusIs;
using ::muster::testing::TempDir;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLong{20};

/// A real master of the job "id-1", and scripts as nodes.
class ScalerMainTest : public ::testing::Test {
 protected:
  ScalerMainTest() {
    MasterServer::Options master;
    master.job.name = "flights";
    master.job.partitions = master.core.partitions = 1;
    master.job.snapshot_directory = folder_.File("snapshots");
    master.core.datasets = {
        {"train", DatasetMode::kTrain, 1, 2, 20, 5, [](EpochIndex, ShardIndex) { return 10u; }}};
    master.core.run_id = "run-1";
    master.listen_address = "127.0.0.1:0";
    auto server = MasterServer::Start(std::move(master), &journal_, &clock_);
    EXPECT_THAT(server.status(), IsOk());
    server_ = *std::move(server);
    EXPECT_EQ(::pipe2(life_, O_CLOEXEC), 0);
    EXPECT_THAT(MakeDirectories(folder_.File("logs")), IsOk());
    options_ = {.job = {"id-1", "flights"},
                .run_id = "run-1",
                .master_address = "127.0.0.1:" + std::to_string(server_->port()),
                .servers = 1,
                .workers = 1,
                .program = MUSTER_SUPERVISE_PROGRAM,
                .directory = folder_.File("scaler"),
                .log_directory = folder_.File("logs"),
                .socket_directory = folder_.File("nodes"),
                .command_of = [this](const std::string& node,
                                     NodeRole role) { return CommandOf(node, role); },
                .life_fd = life_[0],
                .beat_fd = beat_fd_};
    options_.keeper.restarts = {.crash_loop_exits = 3, .backoff_initial = milliseconds(1)};
    options_.keeper.finish_wait = milliseconds(1);
    client_ = MakeAdminClient(options_.master_address, options_.job, kLong, WhenAway::kWait);
  }
  ~ScalerMainTest() override {
    ::close(life_[1]);
    KillDescendants({});
    ::close(life_[0]);
    ::close(beat_fd_);
  }

  NodeCommand CommandOf(const std::string& node, NodeRole role) {
    const std::string script = role == NodeRole::kWorker ? worker_ : server_script_;
    return {.name = node,
            .command = {"sh", "-c", fmt::format("echo start $MUSTER_START; {}", script)},
            .environment = {}};
  }
  std::string Log(const std::string& node) {
    return ReadFile(folder_.File("logs/" + node + ".log"), 1 << 20).value_or("");
  }
  v1::JobStatus Status() { return *client_->GetStatus(); }
  std::string ExitOf(const std::string& node) {
    const v1::JobStatus job = Status();
    for (const v1::NodeStatus& status : job.nodes()) {
      if (status.name() == node && status.state() == "exited") return status.last_exit();
    }
    return "none";
  }
  /// Runs the scaler until `condition` holds and the job was cancelled for it.
  absl::StatusOr<KeeperOutcome> RunUntil(const std::function<bool()>& condition) {
    std::thread canceller([&] {
      for (int i = 0; i < 2'000 && !condition(); ++i) ::poll(nullptr, 0, 10);
      EXPECT_TRUE(condition());
      EXPECT_THAT(client_->Cancel(v1::CancelRequest()), IsOk());
    });
    absl::StatusOr<KeeperOutcome> outcome = RunScaler(options_, &clock_);
    canceller.join();
    return outcome;
  }

  TempDir folder_;
  const SystemClock clock_;
  MemoryJournal journal_{DurableState{}, "id-1"};
  std::unique_ptr<MasterServer> server_;
  std::unique_ptr<AdminClient> client_;
  int life_[2];
  int beat_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::string worker_ = "exec sleep 1000";
  std::string server_script_ = "exec sleep 1000";
  ScalerOptions options_;
};

TEST_F(ScalerMainTest, StartsNodesAndEndsThemWithTheJob) {
  const absl::StatusOr<KeeperOutcome> outcome =
      RunUntil([&] { return Log("worker-0").find("start 1") != std::string::npos; });
  ASSERT_THAT(outcome.status(), IsOk());
  EXPECT_EQ(outcome->state, KeeperOutcome::State::kJobOver);
  EXPECT_EQ(ExitOf("ps-0"), "SIGTERM") << "the master has heard of every exit";
  EXPECT_EQ(ExitOf("worker-0"), "SIGTERM");
  // Released supervising processes take a moment.
  for (int i = 0; i < 2'000 && !Descendants({}).empty(); ++i) ::poll(nullptr, 0, 10);
  EXPECT_TRUE(Descendants({}).empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.File("nodes")));
  uint64_t beats = 0;
  EXPECT_EQ(::read(beat_fd_, &beats, sizeof(beats)), static_cast<ssize_t>(sizeof(beats)));
}

TEST_F(ScalerMainTest, RelaunchesAndRemembersIt) {
  worker_ = "if [ $MUSTER_START = 1 ]; then kill -KILL $$; fi; exec sleep 1000";
  const absl::StatusOr<KeeperOutcome> outcome = RunUntil([&] {
    const absl::StatusOr<Plan> plan = ReadPlan(folder_.File("scaler/plan.json"));
    return plan.ok() && plan->nodes.at("worker-0").starts == 2 &&
           Log("worker-0").find("start 2") != std::string::npos;
  });
  ASSERT_THAT(outcome.status(), IsOk());
  const v1::JobStatus job = Status();
  for (const v1::NodeStatus& node : job.nodes()) {
    EXPECT_EQ(node.restarts(), node.name() == "worker-0" ? 1u : 0u) << node.name();
  }
}

TEST_F(ScalerMainTest, CrashLoopEndsTheJobAsFailed) {
  worker_ = "echo no model; exit 3";
  MUSTER_ASSERT_OK_AND_ASSIGN(const KeeperOutcome outcome, RunScaler(options_, &clock_));
  EXPECT_EQ(outcome.state, KeeperOutcome::State::kJobOver);
  EXPECT_EQ(Status().state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(Status().reason(),
              ::testing::AllOf(HasSubstr("worker-0 ended 3 times"), HasSubstr("no model")));
}

TEST_F(ScalerMainTest, PlanOfAnotherRunIsForgotten) {
  Plan plan = NewPlan("run-0", 1, 1);
  plan.nodes["worker-0"] = {.state = NodePlan::State::kFinished, .starts = 7};
  ASSERT_THAT(MakeDirectories(options_.directory), IsOk());
  ASSERT_THAT(WritePlan(options_.directory + "/plan.json", plan), IsOk());
  const absl::StatusOr<KeeperOutcome> outcome =
      RunUntil([&] { return Log("worker-0").find("start 1") != std::string::npos; });
  EXPECT_THAT(outcome.status(), IsOk());
}

TEST_F(ScalerMainTest, KilledWhileNobodyLookedIsReportedAndStartedOnce) {
  Plan plan = NewPlan("run-1", 1, 1);
  plan.nodes["worker-0"] = {.state = NodePlan::State::kRunning, .starts = 4, .pid = 4'000'000};
  ASSERT_THAT(MakeDirectories(options_.directory), IsOk());
  ASSERT_THAT(WritePlan(options_.directory + "/plan.json", plan), IsOk());
  const absl::StatusOr<KeeperOutcome> outcome =
      RunUntil([&] { return Log("worker-0").find("start 5") != std::string::npos; });
  EXPECT_THAT(outcome.status(), IsOk());
  MUSTER_ASSERT_OK_AND_ASSIGN(const v1::ListEventsResponse events,
                              client_->ListEvents(v1::ListEventsRequest()));
  std::vector<std::string> exits;
  for (const v1::Event& event : events.events()) {
    if (event.kind() == "node-exited" && event.node() == "worker-0") exits.push_back(event.text());
  }
  ASSERT_EQ(exits.size(), 2u);
  EXPECT_THAT(exits[0], HasSubstr("pid 4000000: SIGKILL"));
}

TEST_F(ScalerMainTest, ASecondScalerIsRefused) {
  ASSERT_THAT(MakeDirectories(options_.directory), IsOk());
  const std::string path = options_.directory + "/lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_THAT(RunScaler(options_, &clock_),
              StatusIs(absl::StatusCode::kUnavailable,
                       ::testing::AllOf(HasSubstr(path), HasSubstr("another scaler"))));
  ::close(fd);
}

}  // namespace
}  // namespace muster::scaler
