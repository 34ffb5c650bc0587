#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::job_file {

/// A position in the file, from 1.
struct Position {
  int line = 1;
  int column = 1;
};

struct YamlEntry;

/// A YAML document as plain values with positions. Scalars stay texts, because their meaning
/// depends on the field.
struct YamlNode {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  Position position;
  std::string text;             // kScalar
  bool quoted = false;          // kScalar: written in quotes or as a block
  std::vector<YamlNode> items;  // kList
  /// kMap, in the order of the file; keys are scalars.
  std::vector<YamlEntry> entries;
};
struct YamlEntry {
  YamlNode key;
  YamlNode value;
};

inline constexpr int kYamlDepthMax = 24;

/// "job.yaml:3:5: what". It is always one line, even if `what` quotes several lines.
std::string ErrorLine(const std::string& file, Position position, std::string_view what);

/// A description for messages: "a list", "the text 'x'".
std::string Describe(const YamlNode& node);

/// Parses one document. kInvalidArgument with "file:line:column: what" if it is not YAML, there are
/// several documents, it is nested deeper than kYamlDepthMax, or it has anchors, aliases or tags. A
/// job file does not need those, and they can make a small file huge.
absl::StatusOr<YamlNode> ParseYaml(std::string_view text, const std::string& file_name);

}  // namespace muster::job_file
