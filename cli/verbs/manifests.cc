#include "cli/verbs/verb_options.h"
#include "cli/verbs/verbs.h"

namespace muster {

void AddManifests(CLI::App* app, Chosen* chosen, Command<ManifestsOptions> command) {
  const auto options = std::make_shared<ManifestsOptions>();
  CLI::App* verb =
      app->add_subcommand("manifests", "Print the objects of a job on Kubernetes, or write them");
  verb->add_option("job", options->job_file, "Job file")->required();
  verb->add_option("--namespace", options->flags.ns,
                   "Namespace of all objects (spec.kubernetes.namespace, or default)");
  verb->add_option("--image", options->flags.image, "Image of every pod (spec.kubernetes.image)");
  ManifestsOutput* const output = &options->output;
  verb->add_option_function<std::string>(
          "-o,--output",
          [output](const std::string& text) {
            *output = text == "json" ? ManifestsOutput::kJson : ManifestsOutput::kYaml;
          },
          "yaml (the default) or json")
      ->check(CLI::IsMember({"yaml", "json"}));
  verb->add_flag("--secrets", options->secrets,
                 "Print the Secrets alone, with new keys, for `kubectl create -f -`");
  verb->add_option(
      "--kustomize", options->kustomize,
      "Write a base for Kustomize into this folder: kustomization.yaml, and a file for "
      "each object");
  verb->footer(
      "Examples:\n"
      "  muster manifests job.yaml --secrets | kubectl create -f -   # once\n"
      "  muster manifests job.yaml | kubectl apply -f -\n"
      "  muster manifests job.yaml --kustomize deploy/base           # docs/kubernetes.md\n"
      "`muster run job.yaml --on kubernetes` makes the same objects.");
  Choose(verb, chosen, options, std::move(command));
}

}  // namespace muster
