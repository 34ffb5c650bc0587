#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "master/journal/journal.h"

namespace muster {

/// Opens the journal in `directory`, made when it does not exist, and reads its state.
///
/// Every Write is one synced batch. Recovery drops at most an unsynced tail: an acknowledged batch
/// is there, or opening fails (docs: README.md beside this file).
///
/// Errors: kUnavailable when another process has it open; kPermissionDenied and kResourceExhausted
/// (disk full) name the directory; kDataLoss when it is damaged; kFailedPrecondition when it is
/// another job's (see CheckHeader).
absl::StatusOr<std::unique_ptr<Journal>> OpenRocksdbJournal(const std::string& directory,
                                                            const JournalHeader& header);

}  // namespace muster
