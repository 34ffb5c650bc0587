#include "cli/verbs/verb_options.h"

#include <string_view>
#include <utility>

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
                   "Job file; without one and without --state-dir: ./job.yaml");
  verb->add_option("--state-dir", options->target.state_directory, "State directory of the job");
}

void AddNodeAndJob(CLI::App* verb, std::string* node, QueryOptions* options,
                   const std::string& examples) {
  verb->add_option("node", *node, examples + " (it may also follow the job)")->required();
  AddJob(verb, options);
  verb->parse_complete_callback([name = verb->get_name(), node, options] {
    std::string* job = &options->target.job_file;
    if (!IsNodeName(*node) && IsNodeName(*job)) std::swap(*node, *job);
    // The names of nodes have neither.
    if (node->find_first_of("./") == std::string::npos) return;
    throw CLI::ValidationError("node", "'" + *node + "' is no node: name one, as in muster " +
                                           name + " job.yaml worker-1");
  });
}

void AddJobAndOutput(CLI::App* verb, QueryOptions* options) {
  AddJob(verb, options);
  AddOutput(verb, &options->output);
}

void AddTarget(CLI::App* verb, QueryOptions* options) {
  AddJobAndOutput(verb, options);
  verb->add_option("--master", options->master, "Ask this master (127.0.0.1:PORT) instead");
}

}  // namespace muster
