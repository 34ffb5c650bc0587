#include "cli/verbs/verb_options.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "cli/cluster/cluster_run.h"

namespace muster {
namespace {

/// True for master, scaler, ps-0, worker-12.
bool IsNodeName(const std::string& text) {
  const auto numbered = [&text](std::string_view role) {
    return text.starts_with(role) && text.size() > role.size() &&
           text.find_first_not_of("0123456789", role.size()) == std::string::npos;
  };
  return text == "master" || text == "scaler" || numbered("ps-") || numbered("worker-");
}

/// True for 12 and #12.
bool IsEventNumber(const std::string& text) {
  const size_t digits = text.starts_with('#') ? 1 : 0;
  return text.size() > digits && text.find_first_not_of("0123456789", digits) == std::string::npos;
}

/// True for any word in small letters, because only the scaler knows which policies exist.
bool IsPolicyName(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos;
}

/// True if the word looks like a job file or is one.
bool IsJob(const std::string& word) {
  return word.find_first_of("./") != std::string::npos || std::filesystem::exists(word);
}

/// Puts the word that names a node into `node`, and the other one into `job`.
void TellApart(std::vector<std::string> words, std::string* node, std::string* job) {
  std::erase(words, "");
  auto found = std::ranges::find_if(words, IsNodeName);
  if (found == words.end()) {
    found = std::ranges::find_if(words, [](const std::string& word) { return !IsJob(word); });
  }
  if (found != words.end()) {
    *node = *found;
    words.erase(found);
  }
  if (words.size() > 1) {
    throw CLI::ValidationError("job",
                               "'" + words[0] + "' and '" + words[1] + "' are two job files");
  }
  *job = words.empty() ? "" : words.front();
}

/// Adds the node, as an argument besides the job or as --node. If the verb needs a node, `needed`
/// is an example of a command line.
void AddNode(CLI::App* verb, std::string* node, QueryOptions* options, const std::string& help,
             const std::string& needed) {
  const auto word = std::make_shared<std::string>();
  verb->add_option("node", *word, help + " (before or after the job, or as --node)");
  verb->add_option("--node", *node, "The node, by its name");
  verb->parse_complete_callback([word, node, options, needed] {
    std::string named;
    TellApart({*word, options->target.job_file}, &named, &options->target.job_file);
    if (!named.empty() && !node->empty() && named != *node) {
      throw CLI::ValidationError("node", "two nodes are named, " + named + " and " + *node);
    }
    if (node->empty()) *node = named;
    if (!node->empty() || needed.empty()) return;
    throw CLI::ValidationError("node", "the node is missing; write, for example, muster " + needed);
  });
}

void AddStateDirectory(CLI::App* verb, QueryOptions* options) {
  CLI::Option* const folder = verb->add_option("--state-dir", options->target.state_directory,
                                               "State directory of the job");
  ClusterTarget* const cluster = &options->target.cluster;
  AddClusterPlace(verb, cluster);
  verb->get_option("--on")->excludes(folder);
  verb->add_option("--job", cluster->job, "With --on: the job's name (the job file's)")
      ->needs(verb->get_option("--on"));
}

}  // namespace

void AddClusterPlace(CLI::App* verb, ClusterTarget* cluster) {
  CLI::Option* const on =
      verb->add_option("--on", cluster->on, "Where the job runs, if not here: kubernetes")
          ->check(CLI::IsMember({"kubernetes"}));
  verb->add_option("--context", cluster->context,
                   "With --on: the context of the kubeconfig (the current one)")
      ->needs(on);
  verb->add_option("--namespace", cluster->ns,
                   "With --on: the namespace (the job file's, else the context's)")
      ->needs(on);
  verb->add_option("--kubeconfig", cluster->kubeconfig,
                   "With --on: the kubeconfig ($KUBECONFIG, else ~/.kube/config)")
      ->needs(on);
}

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
  AddStateDirectory(verb, options);
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
  AddNode(verb, node, options, examples, verb->get_name() + " job.yaml worker-1");
  AddJob(verb, options);
}

void AddOptionalNode(CLI::App* verb, std::string* node, QueryOptions* options,
                     const std::string& help) {
  AddNode(verb, node, options, help, "");
}

void AddNodesAndJob(CLI::App* verb, std::vector<std::string>* nodes, QueryOptions* options,
                    const std::string& help) {
  const auto words = std::make_shared<std::vector<std::string>>();
  verb->add_option("nodes", *words, help + ", and the job file (./job.yaml), in any order");
  verb->add_option("--node", *nodes, "A node; the same as its name alone")
      ->take_all()
      ->allow_extra_args(false);
  AddStateDirectory(verb, options);
  verb->parse_complete_callback([words, nodes, options] {
    for (const std::string& word : *words) {
      std::string* const job = &options->target.job_file;
      if (IsNodeName(word) || !IsJob(word)) {
        nodes->push_back(word);
      } else if (job->empty()) {
        *job = word;
      } else {
        throw CLI::ValidationError("nodes", "'" + *job + "' and '" + word + "' are two job files");
      }
    }
  });
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
  verb->add_option("--master", options->master, "Ask this master (HOST:PORT) instead");
}

void AddQuestion(CLI::App* verb, QueryOptions* options) {
  AddTarget(verb, options);
  verb->add_flag("--no-wait,!--wait", options->no_wait,
                 "Do not wait a few seconds for a master that is away");
}

void AddReason(CLI::App* verb, std::string* reason) {
  verb->add_option("--reason", *reason, "Why; the event records it (at most 200 characters)");
}

void AddWaitFlag(CLI::App* verb, bool* wait, const std::string& help) {
  verb->add_flag("--wait,!--no-wait", *wait, help + " (--no-wait, the default: do not)");
}

void AddPage(CLI::App* verb, uint32_t* limit, uint64_t* offset) {
  verb->add_option("-n,--limit", *limit, "Show at most N (1000)")->check(CLI::Range(1, 10'000));
  verb->add_option("--offset", *offset, "Leave out the first N");
}

void AddWait(CLI::App* verb, steer::OrderOptions* order) {
  AddWaitFlag(verb, &order->wait, "Wait until the outcome is known");
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

void AddRunOptions(CLI::App* verb, RunOptions* options) {
  options->termination_log = "/dev/termination-log";
  verb->add_flag("--dry-run", options->dry_run,
                 "Check everything and print the plan, but start nothing");
  verb->add_flag("--retry-failed", options->retry_failed, "Try FAILED shards again");
  verb->add_flag_callback(
      "--no-progress", [options] { options->progress = false; }, "Show no progress on stderr");
  AddOutput(verb, &options->output);
  AddClusterPlace(verb, &options->cluster);
  verb->add_option("--image", options->image, "With --on: the image of every pod")->needs("--on");
  verb->add_flag("--detach,--no-follow", options->detach,
                 "With --on: only start the job, and do not follow it")
      ->needs("--on");
  verb->add_option("--end-with", options->end_with,
                   "End the run at once when this process has ended, which must be the one that "
                   "starts it: its pid")
      ->check(CLI::Range(1, 4'194'304))
      ->excludes("--on");
  AddPlantedBug(verb, &options->planted_bug);
}

const char* const kRunEnds =
    "Ctrl-C drains the job; a second Ctrl-C stops it at once. On a cluster, it leaves the job "
    "running.\n"
    "Exit codes: 0 succeeded, 1 failed, 2 bad arguments, job file or data, 3 drained or stopped,\n"
    "4 cancelled, 7 a server could not read its snapshots, 8 another master took over the job.";

int RunHereOrThere(const RunOptions& options, const Command<RunOptions>& command) {
  return options.cluster.is_set() ? cluster::RunOnCluster(options) : command(options);
}

}  // namespace muster
