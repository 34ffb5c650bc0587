#include <memory>
#include <string>

#include "base/status.h"
#include "base/words/limits.h"
#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"
#include "job/file/scalars.h"

namespace muster {
namespace {

/// Makes the order from the command line. kInvalidArgument if the line gives none.
using OrderMaker = std::function<absl::StatusOr<scaler::Order>()>;

/// One verb.
struct OrderVerb {
  const char* name;
  const char* about;
  const char* footer;
  /// Adds the options and arguments of the order, and the job.
  OrderMaker (*add)(CLI::App* verb, QueryOptions* query);
};

template <typename T>
OrderMaker Make(const std::shared_ptr<T>& order) {
  return [order] { return scaler::Order(*order); };
}

OrderMaker AddRestart(CLI::App* verb, QueryOptions* query) {
  const auto order = std::make_shared<scaler::RestartNode>();
  AddNodeAndJob(verb, &order->node, query, "ps-0, worker-1, ...");
  return Make(order);
}

OrderMaker AddResize(CLI::App* verb, QueryOptions* query) {
  const auto order = std::make_shared<scaler::ResizeNode>();
  const auto memory = std::make_shared<std::string>();
  const auto cpus = std::make_shared<std::string>();
  AddNodeAndJob(verb, &order->node, query, "ps-0, worker-1, ...");
  verb->add_option("--memory", *memory, "New limit of memory, as in a job file: 512Mi, 1.5Gi");
  verb->add_option("--cpus", *cpus, "New limit of CPU in cores: 1.5, or 500m");
  return [=]() -> absl::StatusOr<scaler::Order> {
    if (memory->empty() && cpus->empty()) {
      return absl::InvalidArgumentError(
          "the new limits are missing; give --memory 512Mi, --cpus 1.5, or both");
    }
    if (!memory->empty()) {
      const absl::StatusOr<uint64_t> bytes = job_file::ParseMemory(*memory);
      if (!bytes.ok()) return Annotate(bytes.status(), "--memory");
      order->memory_bytes = *bytes;
    }
    if (!cpus->empty()) {
      const absl::StatusOr<double> cores = job_file::ParseCpu(*cpus);
      if (!cores.ok()) return Annotate(cores.status(), "--cpus");
      order->cpus = *cores;
    }
    return *order;
  };
}

OrderMaker AddScale(CLI::App* verb, QueryOptions* query) {
  const auto order = std::make_shared<scaler::ScaleWorkers>();
  AddJob(verb, query);
  verb->add_option("--workers", order->workers, "New number of workers")
      ->required()
      ->check(CLI::Range(1u, kWorkersMax));
  return Make(order);
}

template <bool kPaused>
OrderMaker AddPolicy(CLI::App* verb, QueryOptions* query) {
  const auto order = std::make_shared<scaler::SetPaused>();
  order->paused = kPaused;
  AddPolicyAndJob(verb, &order->policy, query);
  return Make(order);
}

constexpr OrderVerb kOrderVerbs[] = {
    {"restart", "Restart the process of a worker or a server",
     "Examples:\n"
     "  muster restart job.yaml worker-1 --reason 'looks stuck'\n"
     "  muster restart job.yaml ps-0 --wait      # waits until it serves again; nothing is lost",
     &AddRestart},
    {"resize", "Change the limits of a worker or a server",
     "Examples:\n"
     "  muster resize job.yaml ps-0 --memory 512Mi\n"
     "  muster resize job.yaml worker-1 --cpus 1.5 --wait",
     &AddResize},
    {"scale", "Change the number of workers",
     "Examples:\n"
     "  muster scale job.yaml --workers 4\n"
     "  muster scale job.yaml --workers 2 --wait     # those that leave finish their shards\n"
     "The number holds, because the policy worker-count is paused until the job ends, or until\n"
     "  muster policies resume worker-count job.yaml",
     &AddScale},
};
// These orders take effect at once, so there is nothing to wait for.
constexpr OrderVerb kPolicyVerbs[] = {
    {"pause", "Pause a policy until it is resumed",
     "Example:\n  muster policies pause worker-straggler job.yaml", &AddPolicy<true>},
    {"resume", "Let a paused policy decide again",
     "Example:\n  muster policies resume worker-straggler job.yaml", &AddPolicy<false>},
};

/// `waits` says that the verb has --wait, which waits for the outcome.
void AddOrderVerb(const OrderVerb& row, bool waits, CLI::App* app, Chosen* chosen,
                  const Command<steer::GivenOrder>& command) {
  CLI::App* verb = app->add_subcommand(row.name, row.about);
  const auto options = std::make_shared<steer::OrderOptions>();
  const OrderMaker make = row.add(verb, &options->query);
  AddOutput(verb, &options->query.output);
  AddReason(verb, &options->reason);
  if (waits) AddWait(verb, options.get());
  verb->footer(row.footer);
  verb->callback(
      [=] { *chosen = [=] { return Act(steer::GivenOrder{*options, make()}, command); }; });
}

}  // namespace

void AddOrders(CLI::App* app, Chosen* chosen, Command<steer::GivenOrder> command) {
  for (const OrderVerb& row : kOrderVerbs) AddOrderVerb(row, /*waits=*/true, app, chosen, command);
}

void AddPolicyOrders(CLI::App* policies, Chosen* chosen, Command<steer::GivenOrder> command) {
  for (const OrderVerb& row : kPolicyVerbs) {
    AddOrderVerb(row, /*waits=*/false, policies, chosen, command);
  }
}

}  // namespace muster
