#pragma once

#include <rocksdb/status.h>

#include <string>

#include "absl/status/status.h"

/// Internal to master/journal.
namespace muster {

/// The status for a failed RocksDB call on the journal in `directory`, with what to do: in use
/// (kUnavailable), disk full (kResourceExhausted), not writable (kPermissionDenied), damaged
/// (kDataLoss), anything else (kInternal).
absl::Status JournalStatus(const rocksdb::Status& status, const std::string& directory);

/// The kResourceExhausted of a full disk; `where` begins the message.
absl::Status DiskFull(const std::string& where);

}  // namespace muster
