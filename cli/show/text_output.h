#pragma once

#include <cstddef>
#include <string>

#include "cli/show/epochs.h"
#include "proto/status/job_status.h"
#include "proto/status/partition_status.h"
#include "proto/status/shard_status.h"

/// The texts that verbs print for people. Pure.
namespace muster {

/// `columns` is for the parts that are fitted to a terminal; 0: nothing is left out.
std::string StatusText(const JobStatus& status, EpochsShown shown = EpochsShown::kNewest,
                       size_t columns = 0);
std::string NodesText(const JobStatus& status);
std::string ShardsText(const ShardPage& page);
std::string PartitionsText(const PartitionList& list);
std::string EventText(const MasterEvent& event);

}  // namespace muster
