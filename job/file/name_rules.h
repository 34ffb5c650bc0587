#pragma once

#include <string>

#include "absl/status/status.h"
#include "job/file/job_fields.h"
#include "job/file/yaml_tree.h"

/// Rules for names: their syntax, and which of them a job file may use.
namespace muster::job_file {

/// True for a DNS label.
bool IsName(const std::string& text);
/// True for a name of a Kubernetes object: DNS labels with dots between them, up to 253 bytes.
bool IsObjectName(const std::string& text);
/// True for a name that Kafka accepts for a topic.
bool IsTopic(const std::string& text);

/// Checks the name in an entry of a field of form kEnvironment, kProperties or kSecrets.
absl::Status CheckKey(Form form, const YamlNode& key);
/// Checks the value in an entry of a field of form kSecrets. The error never quotes the value.
absl::Status CheckSecretPlace(const YamlNode& key, const YamlNode& value);

}  // namespace muster::job_file
