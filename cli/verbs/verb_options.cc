#include "cli/verbs/verb_options.h"

namespace muster {

void AddOutput(CLI::App* verb, OutputFormat* output) {
  verb->add_option_function<std::string>(
          "-o,--output",
          [output](const std::string& text) {
            *output = text == "json" ? OutputFormat::kJson : OutputFormat::kText;
          },
          "text (the default) or json")
      ->check(CLI::IsMember({"text", "json"}));
}

void AddNode(CLI::App* verb, std::string* node, const std::string& examples) {
  const auto check = [name = verb->get_name()](const std::string& text) -> std::string {
    if (text.find_first_of("./") == std::string::npos) return "";
    return "'" + text + "' is no node: the node comes first, then the job, as in muster " + name +
           " worker-1 job.yaml";
  };
  verb->add_option("node", *node, examples)->required()->check(check);
}

void AddJob(CLI::App* verb, QueryOptions* options) {
  verb->add_option("job", options->target.job_file,
                   "Job file; without one and without --state-dir: ./job.yaml");
  verb->add_option("--state-dir", options->target.state_directory, "State directory of the job");
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
