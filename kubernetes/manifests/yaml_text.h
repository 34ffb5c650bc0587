#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// JSON as YAML for people. Pure, thread-safe functions.
namespace muster::kubernetes {

/// One document, ending with a line break. Whoever reads it with a parser of YAML 1.1 or 1.2 gets
/// the same values: texts that could be read as something else are in quotes. Texts of several
/// lines are blocks.
std::string YamlOf(const nlohmann::json& value);

/// Several documents, each after a line "---".
std::string YamlOfAll(const std::vector<nlohmann::json>& documents);

}  // namespace muster::kubernetes
