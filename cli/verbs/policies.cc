#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddPolicies(CLI::App* app, Chosen* chosen, Command<QueryOptions> command,
                 Command<steer::PausePolicyOptions> pause_command,
                 Command<steer::PausePolicyOptions> resume_command) {
  const auto options = std::make_shared<QueryOptions>();
  CLI::App* list =
      app->add_subcommand("policies", "What decides by itself; `pause` and `resume` one of them");
  AddJobAndOutput(list, options.get());
  list->footer(
      "Examples:\n"
      "  muster policies job.yaml\n"
      "  muster policies pause worker-straggler job.yaml --reason 'this machine is shared'\n"
      "  muster policies resume worker-straggler job.yaml");
  list->callback([=] {
    if (!*chosen) *chosen = [=] { return command(*options); };  // else one of those below
  });
  const auto add = [&](const std::string& name, const std::string& what,
                       Command<steer::PausePolicyOptions> below) {
    const auto policy = std::make_shared<steer::PausePolicyOptions>();
    CLI::App* verb = list->add_subcommand(name, what);
    AddPolicyAndJob(verb, &policy->policy, &policy->query);
    AddOutput(verb, &policy->query.output);
    AddReason(verb, &policy->reason);
    verb->footer("Example:\n  muster policies " + name + " worker-straggler job.yaml");
    Choose(verb, chosen, policy, std::move(below));
  };
  add("pause", "It decides nothing until it is resumed", std::move(pause_command));
  add("resume", "It decides again", std::move(resume_command));
}

}  // namespace muster
