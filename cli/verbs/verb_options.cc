#include "cli/verbs/verb_options.h"

#include <string_view>
#include <utility>

#include "base/status.h"

namespace muster {
namespace {

/// master, scaler, ps-0, worker-12.
bool IsNodeName(const std::string& text) {
  const auto numbered = [&text](std::string_view role) {
    return text.starts_with(role) && text.size() > role.size() &&
           text.find_first_not_of("0123456789", role.size()) == std::string::npos;
  };
  return text == "master" || text == "scaler" || numbered("ps-") || numbered("worker-");
}

/// 12, #12.
bool IsEventNumber(const std::string& text) {
  const size_t digits = text.starts_with('#') ? 1 : 0;
  return text.size() > digits && text.find_first_not_of("0123456789", digits) == std::string::npos;
}

/// Any word in small letters. Only the scaler knows which policies exist.
bool IsPolicyName(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos;
}

}  // namespace

void AddOutput(CLI::App* verb, OutputFormat* output) {
  verb->add_option_function<std::string>(
          "-o,--output",
          [output](const std::string& text) {
            *output = text == "json" ? OutputFormat::kJson : OutputFormat::kText;
          },
          "text (the default) or json")
      ->check(CLI::IsMember({"text", "json"}));
}

void AddJob(CLI::App* verb, QueryOptions* options) {
  verb->add_option("job", options->target.job_file,
                   "Job file (./job.yaml, unless --state-dir is given)");
  verb->add_option("--state-dir", options->target.state_directory, "State directory of the job");
}

void AddSubjectAndJob(CLI::App* verb, const Subject& subject, std::string* value,
                      QueryOptions* options) {
  verb->add_option(subject.name, *value, subject.help + " (it may also follow the job)")
      ->required();
  AddJob(verb, options);
  verb->parse_complete_callback([subject, value, options] {
    std::string* job = &options->target.job_file;
    if (!subject.is_one(*value) && subject.is_one(*job)) std::swap(*value, *job);
    if (value->find_first_of("./") == std::string::npos) return;
    throw CLI::ValidationError(subject.name, "'" + *value + "' is not a " + subject.name +
                                                 "; write, for example, muster " + subject.example);
  });
}

void AddNodeAndJob(CLI::App* verb, std::string* node, QueryOptions* options,
                   const std::string& examples) {
  AddSubjectAndJob(verb, {"node", examples, verb->get_name() + " job.yaml worker-1", IsNodeName},
                   node, options);
}

void AddEventAndJob(CLI::App* verb, std::string* event, QueryOptions* options) {
  AddSubjectAndJob(verb,
                   {"event", "The event's number in `muster events`",
                    verb->get_name() + " job.yaml 12", IsEventNumber},
                   event, options);
}

void AddPolicyAndJob(CLI::App* verb, std::string* policy, QueryOptions* options) {
  AddSubjectAndJob(verb,
                   {"policy", "The policy's name in `muster policies`",
                    "policies " + verb->get_name() + " job.yaml worker-straggler", IsPolicyName},
                   policy, options);
}

void AddJobAndOutput(CLI::App* verb, QueryOptions* options) {
  AddJob(verb, options);
  AddOutput(verb, &options->output);
}

void AddTarget(CLI::App* verb, QueryOptions* options) {
  AddJobAndOutput(verb, options);
  verb->add_option("--master", options->master, "Ask this master (127.0.0.1:PORT) instead");
}

void AddReason(CLI::App* verb, std::string* reason) {
  verb->add_option("--reason", *reason, "Why; the event records it (at most 200 characters)");
}

void AddWait(CLI::App* verb, steer::OrderOptions* order) {
  verb->add_flag("--wait", order->wait, "Wait until the outcome is known");
  verb->add_option("--timeout", order->timeout_s,
                   "With --wait: wait at most this many seconds (300)")
      ->check(CLI::Range(1, 86'400));
}

void AddPlantedBug(CLI::App* verb, std::string* name) {
  verb->add_option("--planted-bug", *name)->group("")->check([](const std::string& text) {
    const absl::Status known = ParsePlantedBug(text).status();
    return std::string(known.ok() ? "" : Message(known));
  });
}

}  // namespace muster
