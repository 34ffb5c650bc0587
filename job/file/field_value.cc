#include "job/file/field_value.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/address.h"
#include "base/nearest.h"
#include "base/status.h"
#include "base/text.h"
#include "base/words/dataset_modes.h"
#include "job/file/name_rules.h"
#include "job/file/pod_fragment.h"
#include "job/file/scalars.h"
#include "job/file/stream_bound.h"

namespace muster::job_file {
namespace {

absl::Status CheckText(const YamlNode& node) {
  if (node.text.size() > kTextBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes of text; at most {} are allowed", node.text.size(), kTextBytesMax));
  }
  if (node.text.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("the text contains a zero byte");
  }
  return absl::OkStatus();
}

absl::Status Mismatch(const Field& field, const YamlNode& node) {
  std::string hint;
  if (node.kind == YamlNode::Kind::kScalar) {
    if (field.form == Form::kGlobs || field.form == Form::kCommand ||
        field.form == Form::kChoices) {
      hint = fmt::format("; write [{}]", Excerpt(node.text, 60));
    } else if (node.quoted) {
      hint = "; remove the quotes";
    }
  }
  return absl::InvalidArgumentError(fmt::format("expected {} ({}), got {}{}", TypeText(field),
                                                BoundsText(field), Describe(node), hint));
}

absl::Status CheckChoice(const Field& field, const YamlNode& node) {
  if (std::ranges::find(field.choices, node.text) != field.choices.end()) return absl::OkStatus();
  const std::string nearest = Nearest(node.text, field.choices);
  return absl::InvalidArgumentError(
      fmt::format("expected {}, got {}{}", fmt::join(field.choices, ", "), Describe(node),
                  nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

absl::Status StoreText(const Field& field, const YamlNode& node, const FieldScope& scope) {
  MUSTER_RETURN_IF_ERROR(CheckText(node));
  const std::string& text = node.text;
  if (field.form == Form::kPath && text.empty()) return Mismatch(field, node);
  if (field.form == Form::kName && !IsName(text)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a name; use 1 to 63 of a-z, 0-9 and -, and no - at an end", Describe(node)));
  }
  if (field.form == Form::kTopic && !IsTopic(text)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not the name of a topic ({})", Describe(node), BoundsText(field)));
  }
  if (field.form == Form::kAddress) MUSTER_RETURN_IF_ERROR(ParseHostPort(text).status());
  if (field.form == Form::kHost) MUSTER_RETURN_IF_ERROR(CheckHost(text));
  if (field.form == Form::kChoice) MUSTER_RETURN_IF_ERROR(CheckChoice(field, node));
  const Target target = field.target(scope);
  if (auto* const* shuffle = std::get_if<Shuffle*>(&target)) {
    **shuffle = text == "true"     ? Shuffle::kAll
                : text == "shards" ? Shuffle::kShards
                                   : Shuffle::kNone;
    return absl::OkStatus();
  }
  if (auto* const* evaluation = std::get_if<Evaluation*>(&target)) {
    **evaluation = text == "overlap" ? Evaluation::kOverlapping : Evaluation::kAtTheEnd;
    return absl::OkStatus();
  }
  if (auto* const* mode = std::get_if<DatasetMode*>(&target)) {
    **mode = DatasetModeOf(text).value_or(DatasetMode::kTrain);
  } else if (auto* const* tls = std::get_if<TlsUse*>(&target)) {
    **tls = text == "always" ? TlsUse::kAlways : TlsUse::kAuto;
  } else {
    *std::get<std::string*>(target) = text;
  }
  return absl::OkStatus();
}

/// A single port is a number, and a range is a text.
absl::Status StorePorts(const Field& field, const YamlNode& node, const FieldScope& scope) {
  MUSTER_RETURN_IF_ERROR(ParsePortRange(node.text).status());
  *std::get<std::string*>(field.target(scope)) = node.text;
  return absl::OkStatus();
}

/// The bounds of decimal numbers are in thousandths.
uint64_t Thousandths(double value) {
  return static_cast<uint64_t>(std::min(std::round(value * 1000), 1e15));
}

absl::Status StoreNumber(const Field& field, const YamlNode& node, const FieldScope& scope) {
  const bool may_be_quoted =
      field.form == Form::kDuration || field.form == Form::kMemory || field.form == Form::kCores;
  constexpr size_t kDigitsMax = 60;  // an error need not repeat more
  if ((node.quoted && !may_be_quoted) || node.text.size() > kDigitsMax) {
    return Mismatch(field, node);
  }
  const Target target = field.target(scope);
  if (field.form == Form::kBool) {
    MUSTER_ASSIGN_OR_RETURN(*std::get<bool*>(target), ParseBool(node.text));
    return absl::OkStatus();
  }
  uint64_t number = 0;
  double decimal = 0;
  if (field.form == Form::kDuration) {
    MUSTER_ASSIGN_OR_RETURN(const auto duration, ParseDuration(node.text));
    number = static_cast<uint64_t>(duration.count());
  } else if (field.form == Form::kMemory) {
    MUSTER_ASSIGN_OR_RETURN(number, ParseMemory(node.text));
  } else if (field.form == Form::kCores) {
    MUSTER_ASSIGN_OR_RETURN(decimal, ParseCpu(node.text));
    number = Thousandths(decimal);
  } else if (field.form == Form::kNumber) {
    MUSTER_ASSIGN_OR_RETURN(decimal, ParseNumber(node.text));
    number = Thousandths(decimal);
  } else {
    MUSTER_ASSIGN_OR_RETURN(number, ParseWhole(node.text));
  }
  if (number < field.min || number > field.max) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is out of bounds ({}){}", node.text, BoundsText(field),
        number < field.min && !field.min_reason.empty() ? ": " + field.min_reason : ""));
  }
  if (field.whole_seconds && number % 1000 != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a whole number of seconds ({})", node.text, BoundsText(field)));
  }
  if (auto* const* whole = std::get_if<uint32_t*>(&target)) {
    **whole = static_cast<uint32_t>(number);
  } else if (auto* const* count = std::get_if<std::optional<uint32_t>*>(&target)) {
    **count = static_cast<uint32_t>(number);
  } else if (auto* const* large = std::get_if<uint64_t*>(&target)) {
    **large = number;
  } else if (auto* const* duration = std::get_if<std::chrono::milliseconds*>(&target)) {
    **duration = std::chrono::milliseconds(number);
  } else if (auto* const* seconds = std::get_if<std::chrono::seconds*>(&target)) {
    **seconds = std::chrono::seconds(number / 1000);
  } else if (auto* const* memory = std::get_if<std::optional<uint64_t>*>(&target)) {
    **memory = number;
  } else if (auto* const* plain = std::get_if<double*>(&target)) {
    **plain = decimal;
  } else {
    *std::get<std::optional<double>*>(target) = decimal;
  }
  return absl::OkStatus();
}

absl::Status StoreList(const Field& field, const YamlNode& node, const FieldScope& scope) {
  if (node.kind != YamlNode::Kind::kList) return Mismatch(field, node);
  if (node.items.size() < field.min || node.items.size() > field.max) {
    return absl::InvalidArgumentError(
        fmt::format("{} entries are out of bounds ({})", node.items.size(), BoundsText(field)));
  }
  std::vector<std::string> values;
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlNode::Kind::kScalar ||
        (item.text.empty() && (values.empty() || field.form == Form::kGlobs))) {
      return absl::InvalidArgumentError(
          fmt::format("entry {} must be text, not {}", values.size() + 1, Describe(item)));
    }
    MUSTER_RETURN_IF_ERROR(CheckText(item));
    if (field.form == Form::kChoices) {
      MUSTER_RETURN_IF_ERROR(CheckChoice(field, item));
      if (std::ranges::find(values, item.text) != values.end()) {
        return absl::InvalidArgumentError(fmt::format("{} is given twice", item.text));
      }
    }
    values.push_back(item.text);
  }
  *std::get<std::vector<std::string>*>(field.target(scope)) = std::move(values);
  return absl::OkStatus();
}

absl::Status StoreEnvironment(const Field& field, const YamlNode& node, const FieldScope& scope) {
  if (node.kind != YamlNode::Kind::kMap) return Mismatch(field, node);
  if (node.entries.size() > field.max) {
    return absl::InvalidArgumentError(
        fmt::format("{} entries are out of bounds ({})", node.entries.size(), BoundsText(field)));
  }
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : node.entries) {
    MUSTER_RETURN_IF_ERROR(CheckKey(field.form, key));
    if (value.kind != YamlNode::Kind::kScalar) {
      return absl::InvalidArgumentError(
          fmt::format("{} must have text as value, not {}{}", key.text, Describe(value),
                      value.kind == YamlNode::Kind::kNull ? "; write \"\" for empty" : ""));
    }
    MUSTER_RETURN_IF_ERROR(CheckText(value));
    if (field.form == Form::kSecrets) MUSTER_RETURN_IF_ERROR(CheckSecretPlace(key, value));
    if (!values.emplace(key.text, value.text).second) {
      return absl::InvalidArgumentError(fmt::format("{} is given twice", key.text));
    }
  }
  *std::get<std::map<std::string, std::string>*>(field.target(scope)) = std::move(values);
  return absl::OkStatus();
}

absl::Status StoreStreamBound(const Field& field, const YamlNode& node, const FieldScope& scope) {
  MUSTER_ASSIGN_OR_RETURN(
      *std::get<StreamBound*>(field.target(scope)),
      ParseStreamBound(node, field.form == Form::kStreamStart ? BoundOf::kStart : BoundOf::kEnd));
  return absl::OkStatus();
}

absl::Status StoreFragment(const Field& field, const YamlNode& node, const FieldScope& scope) {
  MUSTER_ASSIGN_OR_RETURN(std::string fragment, PodFragment(node, PodsOf(field.path)));
  if (fragment.size() > field.max) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes as JSON are out of bounds ({})", fragment.size(), BoundsText(field)));
  }
  *std::get<std::string*>(field.target(scope)) = std::move(fragment);
  return absl::OkStatus();
}

}  // namespace

absl::Status StoreValue(const Field& field, const YamlNode& node, const FieldScope& scope) {
  switch (field.form) {
    case Form::kGlobs:
    case Form::kCommand:
    case Form::kChoices:
      return StoreList(field, node, scope);
    case Form::kEnvironment:
    case Form::kProperties:
    case Form::kSecrets:
      return StoreEnvironment(field, node, scope);
    case Form::kStreamStart:
    case Form::kStreamEnd:
      return StoreStreamBound(field, node, scope);
    case Form::kFragment:
      return StoreFragment(field, node, scope);
    default:
      break;
  }
  if (node.kind != YamlNode::Kind::kScalar) return Mismatch(field, node);
  switch (field.form) {
    case Form::kPorts:
      return StorePorts(field, node, scope);
    case Form::kHost:
    case Form::kText:
    case Form::kPath:
    case Form::kName:
    case Form::kAddress:
    case Form::kChoice:
    case Form::kTopic:
      return StoreText(field, node, scope);
    default:
      return StoreNumber(field, node, scope);
  }
}

}  // namespace muster::job_file
