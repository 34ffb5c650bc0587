#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/ask/list_command.h"
#include "cli/ask/logs_command.h"
#include "cli/ask/query_commands.h"
#include "cli/ask/stacks_command.h"
#include "cli/export/serve_export_command.h"
#include "cli/join/join_command.h"
#include "cli/manifests/manifests_command.h"
#include "cli/metrics/compare_command.h"
#include "cli/metrics/tensorboard_command.h"
#include "cli/node/node_command.h"
#include "cli/run/node_commands.h"
#include "cli/run/run_command.h"
#include "cli/simulate/simulate_command.h"
#include "cli/steer/cancel_command.h"
#include "cli/steer/dashboard_command.h"
#include "cli/steer/event_commands.h"
#include "cli/steer/order_commands.h"
#include "cli/steer/top_command.h"
#include "cli/steer/wait_command.h"
#include "cli/verify/verify_command.h"

/// The verbs of the muster executable. Each Add... function adds one to the parser, with its
/// options, help and examples. A new verb needs a file here, a line below, and one in AddVerbs.
namespace muster {

/// The action of the chosen verb, after the whole command line is parsed. It returns the exit code
/// of the process.
using Chosen = std::function<int()>;
/// What a verb does with its options. Tests pass other functions, to see the options.
template <typename Options>
using Command = std::function<int(const Options&)>;

/// Adds all verbs, in the order of `muster --help`. `app` and `chosen` must live until the line is
/// parsed.
void AddVerbs(CLI::App* app, Chosen* chosen);

void AddRun(CLI::App* app, Chosen* chosen, Command<RunOptions> command = RunCommand);
/// The same of a job file that it makes from its options.
void AddTrain(CLI::App* app, Chosen* chosen, Command<RunOptions> command = RunCommand);
/// The same of the predict or the evaluate datasets of a job file, with the weights of another job.
void AddPredict(CLI::App* app, Chosen* chosen, Command<RunOptions> command = RunCommand);
void AddEvaluate(CLI::App* app, Chosen* chosen, Command<RunOptions> command = RunCommand);

/// A node for a job of another machine.
void AddJoin(CLI::App* app, Chosen* chosen, Command<JoinOptions> command = JoinCommand);

/// The objects of a job on Kubernetes.
void AddManifests(CLI::App* app, Chosen* chosen,
                  Command<ManifestsOptions> command = ManifestsCommand);

/// The jobs of this machine.
void AddList(CLI::App* app, Chosen* chosen, Command<ListOptions> command = ListCommand);

// The job's master, or its state directory, answers these.
void AddStatus(CLI::App* app, Chosen* chosen, Command<StatusOptions> command = StatusCommand);
void AddNodes(CLI::App* app, Chosen* chosen, Command<QueryOptions> command = NodesCommand);
void AddPartitions(CLI::App* app, Chosen* chosen,
                   Command<PartitionsOptions> command = PartitionsCommand);
void AddExport(CLI::App* app, Chosen* chosen,
               Command<ExportCommandOptions> command = ExportCommand);
void AddTensorboard(CLI::App* app, Chosen* chosen,
                    Command<metrics::TensorboardOptions> command = metrics::TensorboardCommand);
void AddCompare(CLI::App* app, Chosen* chosen,
                Command<metrics::CompareOptions> command = metrics::CompareCommand);
void AddShards(CLI::App* app, Chosen* chosen, Command<ShardsOptions> command = ShardsCommand,
               Command<steer::RetryOptions> retry_command = steer::RetryCommand);
void AddLogs(CLI::App* app, Chosen* chosen, Command<LogsOptions> command = LogsCommand);
void AddStacks(CLI::App* app, Chosen* chosen, Command<StacksOptions> command = StacksCommand);
void AddWait(CLI::App* app, Chosen* chosen,
             Command<steer::WaitOptions> command = steer::WaitCommand);

// The master can carry these out if no scaler serves.
void AddEvents(CLI::App* app, Chosen* chosen,
               Command<steer::EventsOptions> command = steer::EventsCommand);
void AddDrain(CLI::App* app, Chosen* chosen,
              Command<steer::DrainOptions> command = steer::DrainCommand);
void AddCancel(CLI::App* app, Chosen* chosen,
               Command<steer::CancelOptions> command = steer::CancelCommand);

void AddSimulate(CLI::App* app, Chosen* chosen,
                 Command<simulate::SimulateOptions> command = simulate::SimulateCommand);

// Only a scaler can carry these out.
void AddExplain(CLI::App* app, Chosen* chosen,
                Command<steer::ExplainOptions> command = steer::ExplainCommand);
void AddTop(CLI::App* app, Chosen* chosen, Command<steer::TopOptions> command = steer::TopCommand);
void AddPolicies(CLI::App* app, Chosen* chosen,
                 Command<QueryOptions> command = steer::PoliciesCommand,
                 Command<steer::GivenOrder> order_command = steer::OrderCommand);
/// restart, resize, scale: orders.
void AddOrders(CLI::App* app, Chosen* chosen,
               Command<steer::GivenOrder> command = steer::OrderCommand);
/// The orders below the verb `policies`.
void AddPolicyOrders(CLI::App* policies, Chosen* chosen, Command<steer::GivenOrder> command);

void AddDashboard(CLI::App* app, Chosen* chosen,
                  Command<steer::DashboardOptions> command = steer::DashboardCommand);

// These are about the program itself.
void AddHelp(CLI::App* app, Chosen* chosen);
void AddVersion(CLI::App* app, Chosen* chosen);
void AddCompletion(CLI::App* app, Chosen* chosen);

// These are the processes of a run. `muster --help` does not list them, because `muster run` starts
// them.
void AddMaster(CLI::App* app, Chosen* chosen,
               Command<MasterCommandOptions> command = MasterCommand);
void AddPs(CLI::App* app, Chosen* chosen, Command<ServerCommandOptions> command = ServerCommand);
void AddScaler(CLI::App* app, Chosen* chosen,
               Command<ScalerCommandOptions> command = ScalerCommand);
void AddNode(CLI::App* app, Chosen* chosen, Command<PodNodeOptions> command = PodNodeCommand);
void AddServeExport(CLI::App* app, Chosen* chosen,
                    Command<ServeExportOptions> command = ServeExportCommand);

void AddVerify(CLI::App* app, Chosen* chosen,
               Command<verify::VerifyOptions> command = verify::VerifyCommand);

}  // namespace muster
