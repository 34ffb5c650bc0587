#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Pure, thread-safe functions.
namespace muster::kubernetes {

struct ManifestFile {
  std::string name;  // "job.yaml"
  std::string text;
};

/// The files of a base for Kustomize: kustomization.yaml first, then a file for each object, named
/// by its kind, and for claims by its name, too.
std::vector<ManifestFile> KustomizeBase(const std::vector<nlohmann::json>& objects);

}  // namespace muster::kubernetes
