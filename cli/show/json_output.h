#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "proto/status/job_status.h"

/// What `--output json` adds to the documents of the model (ToJson of proto/fields/json.h over
/// proto/status). docs/cli.md lists all documents, so fields may only be added. Pure.
namespace muster {

/// {"nodes": [...]}.
nlohmann::json NodesToJson(const JobStatus& status);

/// "2026-01-31T12:34:56.789Z".
std::string WallToText(uint64_t wall_us);

}  // namespace muster
