#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/status/job_status.h"
#include "proto/status/partition_status.h"
#include "proto/status/shard_status.h"

/// What the verbs print for people. Pure.
namespace muster {

std::string StatusText(const JobStatus& status);
std::string NodesText(const JobStatus& status);
std::string ShardsText(const ShardPage& page);
std::string PartitionsText(const PartitionList& list);
std::string EventText(const MasterEvent& event);

/// Columns as wide as their widest cell, two spaces apart; the first row is the heading.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace muster
