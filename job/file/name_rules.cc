#include "job/file/name_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>

namespace muster::job_file {
namespace {

bool IsVariableName(const std::string& text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

absl::Status CheckVariable(const YamlNode& key) {
  if (!IsVariableName(key.text)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a variable name (A-Z, a-z, 0-9, _, no digit first)", Describe(key)));
  }
  if (key.text == "MUSTER_MASTER" || key.text == "MUSTER_NODE" || key.text == "MUSTER_SLOT_FILE" ||
      key.text == "MUSTER_START" || key.text == "MUSTER_JOB_ID") {
    return absl::InvalidArgumentError(fmt::format("{} is set by muster run; remove it", key.text));
  }
  return absl::OkStatus();
}

/// Rejects settings of librdkafka that the job file may not have, or not at this place.
absl::Status CheckProperty(Form form, const YamlNode& key) {
  // These decide which records are read, and where offsets are committed, so only Muster sets them.
  constexpr std::string_view kOurs[] = {
      "bootstrap.servers",        "metadata.broker.list", "group.id",
      "group.instance.id",        "enable.auto.commit",   "enable.auto.offset.store",
      "auto.offset.reset",        "isolation.level",      "enable.partition.eof",
      "transactional.id",         "plugin.library.paths", "fetch.message.max.bytes",
      "max.partition.fetch.bytes"};
  constexpr std::string_view kSecret[] = {"sasl.password",
                                          "ssl.key.password",
                                          "ssl.keystore.password",
                                          "ssl.key.pem",
                                          "sasl.oauthbearer.client.secret",
                                          "sasl.oauthbearer.config"};
  const bool name = !key.text.empty() && std::ranges::all_of(key.text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
  });
  if (!name) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not the name of a setting of librdkafka", Describe(key)));
  }
  if (std::ranges::find(kOurs, key.text) != std::end(kOurs)) {
    return absl::InvalidArgumentError(fmt::format("{} is set by Muster; remove it", key.text));
  }
  if (form == Form::kProperties && std::ranges::find(kSecret, key.text) != std::end(kSecret)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is a secret; move it to kafka.secrets, and write env:NAME or file:PATH", key.text));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsName(const std::string& text) {
  constexpr size_t kBytesMax = 63;
  if (text.empty() || text.size() > kBytesMax || text.front() == '-' || text.back() == '-') {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

bool IsObjectName(const std::string& text) {
  constexpr size_t kBytesMax = 253;
  if (text.size() > kBytesMax) return false;
  std::istringstream labels(text + '.');
  bool valid = true;
  for (std::string label; valid && std::getline(labels, label, '.');) valid = IsName(label);
  return valid && !text.empty();
}

bool IsTopic(const std::string& text) {
  constexpr size_t kBytesMax = 249;
  if (text.empty() || text.size() > kBytesMax || text == "." || text == "..") return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

absl::Status CheckKey(Form form, const YamlNode& key) {
  return form == Form::kEnvironment ? CheckVariable(key) : CheckProperty(form, key);
}

absl::Status CheckSecretPlace(const YamlNode& key, const YamlNode& value) {
  constexpr std::string_view kEnv = "env:", kFile = "file:";
  if (value.text.starts_with(kEnv) && IsVariableName(value.text.substr(kEnv.size()))) {
    return absl::OkStatus();
  }
  if (value.text.starts_with(kFile) && value.text.size() > kFile.size()) return absl::OkStatus();
  // The message does not quote the text, because it may be the secret itself.
  return absl::InvalidArgumentError(
      fmt::format("{} must say where the value is; write env:NAME or file:PATH", key.text));
}

}  // namespace muster::job_file
