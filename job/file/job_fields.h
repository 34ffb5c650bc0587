#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "job/file/dataset_draft.h"
#include "job/job_spec.h"

namespace muster::job_file {

/// The form of a field's value.
enum class Form : uint8_t {
  kText,
  kName,     // a DNS label, because it becomes a part of names of files and pods
  kChoice,   // one of Field::choices
  kPath,     // relative to the job file's folder
  kAddress,  // host:port
  kHost,     // an address or a name
  kPorts,    // a range
  kWhole,    // bounds: the number
  kNumber,   // bounds: thousandths
  kBool,
  kDuration,     // bounds: milliseconds
  kMemory,       // bounds: bytes
  kCores,        // bounds: thousandths
  kGlobs,        // bounds: entries
  kCommand,      // bounds: entries
  kChoices,      // a list of Field::choices
  kEnvironment,  // bounds: entries
  kTopic,        // a name that Kafka accepts
  kStreamStart,
  kStreamEnd,
  kProperties,  // bounds: entries
  kSecrets,     // bounds: entries
  kFragment,    // of a PodTemplateSpec: see pod_fragment.h
};

/// Says whether a job can be resumed with another value.
enum class OnResume : uint8_t { kFixed, kMayChange, kMayGrow };

/// The objects into which values are stored.
struct FieldScope {
  JobSpec* job = nullptr;
  DatasetDraft* dataset = nullptr;  // fields of spec.datasets[]
  std::string* unused = nullptr;    // for fields that are only checked
};
using Target = std::variant<std::string*, uint32_t*, uint64_t*, bool*, std::chrono::milliseconds*,
                            DatasetMode*, Shuffle*, Evaluation*, TlsUse*, std::vector<std::string>*,
                            std::map<std::string, std::string>*, double*, std::optional<double>*,
                            std::optional<uint32_t>*, std::optional<uint64_t>*, StreamBound*,
                            std::chrono::seconds*>;

/// One field of the job file. The parser and docs/job-file.md use the same table.
struct Field {
  std::string path;  // "spec.datasets[].name"
  Form form = Form::kText;
  bool required = false;
  uint64_t min = 0;
  uint64_t max = 0;
  /// Why a value below `min` does not work. Empty if that is obvious.
  std::string min_reason;
  bool whole_seconds = false;  // for durations
  std::vector<std::string> choices;
  OnResume on_resume = OnResume::kMayChange;
  std::string text;
  /// The place where the value is stored. The pointer has the type that the form needs.
  std::function<Target(const FieldScope&)> target;
  /// The default for the documentation. If empty, it is the value in a new JobSpec.
  std::string default_text;
};

/// The longest text of any field, in bytes.
inline constexpr size_t kTextBytesMax = 4096;
inline constexpr size_t kDatasetsMax = 64;

/// Every field, in the order of the documentation.
const std::vector<Field>& JobFields();

/// "whole number", "duration": for messages and documentation.
std::string TypeText(const Field& field);
/// "1 to 65536", "100ms to 24h".
std::string BoundsText(const Field& field);
/// The value if the field is not given.
std::string DefaultText(const Field& field);

/// The reference table of docs/job-file.md, in Markdown.
std::string FieldTableMarkdown();

}  // namespace muster::job_file
