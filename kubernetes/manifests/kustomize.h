#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// A base for Kustomize. Pure, thread-safe functions.
namespace muster::kubernetes {

struct ManifestFile {
  std::string name;  // "job.yaml"
  std::string text;
};

/// The files of a base for Kustomize: kustomization.yaml comes first, and then a file for each
/// object. Its name is the object's kind; for claims, the name of the claim is added.
std::vector<ManifestFile> KustomizeBase(const std::vector<nlohmann::json>& objects);

}  // namespace muster::kubernetes
