#include "cli/verbs/steer_verbs.h"

#include <string>

#include "cli/verbs/verb_options.h"
#include "sharding/limits.h"

namespace muster {
namespace {

void AddReason(CLI::App* verb, std::string* reason) {
  verb->add_option("--reason", *reason, "Why, for the record (at most 200 characters)");
}

/// What an order has whose outcome can be waited for.
void AddOrder(CLI::App* verb, steer::OrderOptions* order) {
  AddOutput(verb, &order->query.output);
  AddReason(verb, &order->reason);
  verb->add_flag("--wait", order->wait, "Until it is known what came of it");
  verb->add_option("--timeout", order->timeout_s, "With --wait: seconds (300)")
      ->check(CLI::Range(1, 86'400));
}

void AddEvents(CLI::App* app, SteerVerbs* verbs) {
  steer::EventsOptions* options = &verbs->events;
  CLI::App* verb = app->add_subcommand(
      "events", "What happened and what was decided, oldest first, also after the run");
  AddTarget(verb, &options->query);
  verb->add_flag("-f,--follow", options->follow, "Go on until the run ends");
  verb->add_option("-n,--last", options->last, "Only so many of the newest");
  verb->add_option("--after", options->after, "Only what came after this event of the scaler");
  verb->add_option("--kind", options->kinds,
                   "Only these: decision, outcome, exit, action, note (of the scaler), "
                   "node-exited, shard-failed, ... (of the master)")
      ->expected(1)
      ->take_all();
  verb->add_option("--node", options->node, "Only of this node");
  verb->footer(
      "Examples:\n"
      "  muster events job.yaml -n 20\n"
      "  muster events job.yaml --follow --kind decision --kind outcome\n"
      "  muster events job.yaml --node ps-0 --after 12\n"
      "Events with a number (#12) are the scaler's: muster explain 12 tells more.");
  verb->callback([verbs] { verbs->chosen = [verbs] { return EventsCommand(verbs->events); }; });
}

void AddExplain(CLI::App* app, SteerVerbs* verbs) {
  CLI::App* explain = app->add_subcommand(
      "explain", "Why something was decided: evidence, before and after, what came of it");
  AddEventAndJob(explain, &verbs->explain.event, &verbs->explain.query);
  AddOutput(explain, &verbs->explain.query.output);
  explain->footer("Examples:\n  muster explain 12 job.yaml\n  muster explain 12 --output json");
  explain->callback(
      [verbs] { verbs->chosen = [verbs] { return ExplainCommand(verbs->explain); }; });
}

void AddTop(CLI::App* app, SteerVerbs* verbs) {
  CLI::App* verb = app->add_subcommand("top", "What the job does now, until q is pressed");
  AddJobAndOutput(verb, &verbs->top.query);
  verb->add_option("--interval", verbs->top.interval_s, "Seconds between two looks (1)")
      ->check(CLI::Range(0.1, 3'600.0));
  verb->add_flag("--once", verbs->top.once, "Two looks, shown once");
  verb->footer(
      "Examples:\n"
      "  muster top job.yaml                          # q or Ctrl-C ends it, the job goes on\n"
      "  muster top job.yaml --once\n"
      "  muster top job.yaml --interval 10 --output json >> figures.jsonl");
  verb->callback([verbs] { verbs->chosen = [verbs] { return TopCommand(verbs->top); }; });
}

void AddNodeOrders(CLI::App* app, SteerVerbs* verbs) {
  CLI::App* restart =
      app->add_subcommand("restart", "End a worker's or a server's process and start it anew");
  AddNodeAndJob(restart, &verbs->restart.node, &verbs->restart.order.query, "ps-0, worker-1, ...");
  AddOrder(restart, &verbs->restart.order);
  restart->footer(
      "Examples:\n"
      "  muster restart job.yaml worker-1 --reason 'looks stuck'\n"
      "  muster restart job.yaml ps-0 --wait      # until it serves again; nothing is lost");
  restart->callback(
      [verbs] { verbs->chosen = [verbs] { return RestartCommand(verbs->restart); }; });

  CLI::App* resize = app->add_subcommand("resize", "Give a worker or a server other limits");
  AddNodeAndJob(resize, &verbs->resize.node, &verbs->resize.order.query, "ps-0, worker-1, ...");
  AddOrder(resize, &verbs->resize.order);
  resize->add_option("--memory", verbs->resize.memory, "As in a job file: 512Mi, 1.5Gi");
  resize->add_option("--cpus", verbs->resize.cpus, "Cores: 1.5, or 500m");
  resize->footer(
      "Examples:\n"
      "  muster resize job.yaml ps-0 --memory 512Mi\n"
      "  muster resize job.yaml worker-1 --cpus 1.5 --wait");
  resize->callback([verbs] { verbs->chosen = [verbs] { return ResizeCommand(verbs->resize); }; });
}

void AddScale(CLI::App* app, SteerVerbs* verbs) {
  CLI::App* scale = app->add_subcommand("scale", "Train with more or fewer workers");
  AddJob(scale, &verbs->scale.order.query);
  AddOrder(scale, &verbs->scale.order);
  scale->add_option("--workers", verbs->scale.workers, "How many there shall be")
      ->required()
      ->check(CLI::Range(1u, kWorkersMax));
  scale->footer(
      "Examples:\n"
      "  muster scale job.yaml --workers 4\n"
      "  muster scale job.yaml --workers 2 --wait     # those that leave finish their shards\n"
      "The number holds: the policy worker-count is paused, until the job ends or you lift it "
      "with\n"
      "  muster policies resume worker-count job.yaml");
  scale->callback([verbs] { verbs->chosen = [verbs] { return ScaleCommand(verbs->scale); }; });
}

void AddCancel(CLI::App* app, SteerVerbs* verbs) {
  CLI::App* cancel = app->add_subcommand("cancel", "End the job now; what is committed stays");
  AddTarget(cancel, &verbs->cancel.query);
  AddReason(cancel, &verbs->cancel.reason);
  cancel->footer("Example:\n  muster cancel job.yaml --reason 'wrong learning rate'");
  cancel->callback([verbs] { verbs->chosen = [verbs] { return CancelCommand(verbs->cancel); }; });
}

void AddDrain(CLI::App* app, SteerVerbs* verbs) {
  steer::DrainOptions* options = &verbs->drain;
  CLI::App* drain =
      app->add_subcommand("drain", "Let workers finish what they hold, snapshot, end the run");
  AddTarget(drain, &options->query);
  AddReason(drain, &options->reason);
  drain->add_option("--node", options->node,
                    "Only this worker or server; the job goes on without it");
  drain->add_flag("--wait", options->wait, "With --node: until it is drained");
  drain
      ->add_option("--timeout", options->timeout_s,
                   "With --node: seconds after which it counts as drained as it is (the job's "
                   "drainTimeout)")
      ->check(CLI::Range(1, 86'400));
  drain->add_flag("--undo", options->undo,
                  "With --node: take it back, unless a worker has heard of it");
  drain->footer(
      "Examples:\n"
      "  muster drain job.yaml                          # resume with: muster run job.yaml\n"
      "  muster drain job.yaml --node ps-1 --wait       # its snapshots are new: stop it cheaply\n"
      "  muster drain job.yaml --node worker-2          # it finishes its shard and ends");
  drain->callback([verbs] { verbs->chosen = [verbs] { return DrainCommand(verbs->drain); }; });
}

void AddPolicies(CLI::App* app, SteerVerbs* verbs) {
  CLI::App* list =
      app->add_subcommand("policies", "What decides by itself; `pause` and `resume` one of them");
  AddJobAndOutput(list, &verbs->policies);
  list->footer(
      "Examples:\n"
      "  muster policies job.yaml\n"
      "  muster policies pause worker-straggler job.yaml --reason 'this machine is shared'\n"
      "  muster policies resume worker-straggler job.yaml");
  list->callback([verbs] {
    if (!verbs->chosen) verbs->chosen = [verbs] { return steer::PoliciesCommand(verbs->policies); };
  });
  const auto add = [&](const std::string& name, const std::string& what,
                       int (*command)(const steer::PausePolicyOptions&)) {
    CLI::App* verb = list->add_subcommand(name, what);
    AddPolicyAndJob(verb, &verbs->policy.policy, &verbs->policy.query);
    AddOutput(verb, &verbs->policy.query.output);
    AddReason(verb, &verbs->policy.reason);
    verb->footer("Example:\n  muster policies " + name + " worker-straggler job.yaml");
    verb->callback(
        [verbs, command] { verbs->chosen = [verbs, command] { return command(verbs->policy); }; });
  };
  add("pause", "It decides nothing until it is resumed", &steer::PausePolicyCommand);
  add("resume", "It decides again", &steer::ResumePolicyCommand);
}

}  // namespace

void AddSteerVerbs(CLI::App* app, SteerVerbs* verbs) {
  AddEvents(app, verbs);
  AddDrain(app, verbs);
  AddCancel(app, verbs);
}

void AddScalerVerbs(CLI::App* app, SteerVerbs* verbs) {
  AddExplain(app, verbs);
  AddTop(app, verbs);
  AddNodeOrders(app, verbs);
  AddScale(app, verbs);
  AddPolicies(app, verbs);
}

}  // namespace muster
