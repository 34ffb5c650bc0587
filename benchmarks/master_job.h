#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "master/core/core_options.h"
#include "master/journal/journal.h"
#include "master/sources/source_catalog.h"

/// The job with which the master is measured: one epoch of one dataset of `shards` shards, of 4,096
/// records each, in one file that is never read.
namespace muster {

inline constexpr char kMasterJobId[] = "bench";
inline constexpr uint32_t kMasterJobRecords = 4096;  // of a shard

/// 256 partitions, a snapshot a second.
CoreOptions MasterJobOptions(uint64_t shards);
SourceCatalog MasterJobSources(uint64_t shards);
/// Of this job, below `folder`; made when there is none. Ends the program when that fails.
std::unique_ptr<Journal> OpenMasterJournal(const std::string& folder);

}  // namespace muster
