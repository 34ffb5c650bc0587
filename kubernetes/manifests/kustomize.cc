#include "kubernetes/manifests/kustomize.h"

#include <algorithm>
#include <utility>

#include "kubernetes/manifests/yaml_text.h"

namespace muster::kubernetes {
namespace {

using nlohmann::json;

std::string FileNameOf(const json& object) {
  std::string kind = object.at("kind").get<std::string>();
  std::ranges::transform(kind, kind.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (kind != "persistentvolumeclaim") return kind + ".yaml";
  return kind + "-" + object.at("metadata").at("name").get<std::string>() + ".yaml";
}

}  // namespace

std::vector<ManifestFile> KustomizeBase(const std::vector<json>& objects) {
  std::vector<ManifestFile> files(1);
  json resources = json::array();
  for (const json& object : objects) {
    files.push_back({FileNameOf(object), YamlOf(object)});
    resources.push_back(files.back().name);
  }
  files[0] = {"kustomization.yaml", YamlOf({{"apiVersion", "kustomize.config.k8s.io/v1beta1"},
                                            {"kind", "Kustomization"},
                                            {"resources", std::move(resources)}})};
  return files;
}

}  // namespace muster::kubernetes
