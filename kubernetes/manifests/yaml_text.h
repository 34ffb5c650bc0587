#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Shows JSON as YAML to people. Pure, thread-safe functions.
namespace muster::kubernetes {

/// One document, with a line break at its end. Parsers of YAML 1.1 and 1.2 read the same values
/// from it: texts that could be read as something else are in quotes. Texts of several lines are
/// blocks.
std::string YamlOf(const nlohmann::json& value);

/// Several documents, each after a line "---".
std::string YamlOfAll(const std::vector<nlohmann::json>& documents);

}  // namespace muster::kubernetes
