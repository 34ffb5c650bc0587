#pragma once

#include <string>

#include "absl/status/status.h"
#include "job/file/job_fields.h"
#include "job/file/yaml_tree.h"

/// What names may look like, and which of them a job file may give.
namespace muster::job_file {

/// A DNS label.
bool IsName(const std::string& text);
/// What Kafka takes as the name of a topic.
bool IsTopic(const std::string& text);

/// The name in an entry of a field of form kEnvironment, kProperties or kSecrets.
absl::Status CheckKey(Form form, const YamlNode& key);
/// The value in an entry of a field of form kSecrets; the error never repeats it.
absl::Status CheckSecretPlace(const YamlNode& key, const YamlNode& value);

}  // namespace muster::job_file
