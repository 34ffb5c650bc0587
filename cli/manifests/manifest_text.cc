#include "cli/manifests/manifest_text.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/version.h"
#include "cli/show/shell_word.h"
#include "job/in_cluster.h"
#include "kubernetes/manifests/yaml_text.h"
#include "proto/fields/json.h"

namespace muster {
namespace {

using nlohmann::json;

std::string ListOf(const std::vector<json>& objects) {
  const json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}};
  return JsonText(list, 2) + "\n";
}

}  // namespace

std::string SecretsLine(const ManifestsOptions& options, const std::string& ns) {
  std::string line = fmt::format("muster manifests {} --secrets --namespace {}",
                                 ShellWord(options.job_file), ShellWord(ns));
  if (!options.flags.image.empty()) line += " --image " + ShellWord(options.flags.image);
  return line + " | kubectl create -f -";
}

std::string ManifestsText(const ManifestsOptions& options, const kubernetes::ManifestJob& job) {
  const std::vector<json> objects = kubernetes::ObjectsOf(job.spec, job.options);
  if (options.output == ManifestsOutput::kJson) return ListOf(objects);
  const InClusterNames names(job.spec.name);
  return fmt::format(
             "# The job {} in the namespace {}, from muster {}. Apply with: kubectl apply -f -\n"
             "# Its Secrets {} and {} are not here, because they must not be committed. Make them "
             "once:\n"
             "#   {}\n",
             job.spec.name, job.options.ns, kVersion, names.muster, names.authority,
             // Printable, because a line break would end the comment.
             Printable(SecretsLine(options, job.options.ns))) +
         kubernetes::YamlOfAll(objects);
}

std::string SecretsText(const ManifestsOptions& options, const std::vector<json>& secrets) {
  if (options.output == ManifestsOutput::kJson) return ListOf(secrets);
  return "# New keys, a new token and a new job id each time. Apply them once with: kubectl create "
         "-f -\n" +
         kubernetes::YamlOfAll(secrets);
}

}  // namespace muster
