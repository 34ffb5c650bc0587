#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "master/journal/journal.h"
#include "master/journal/rocksdb_journal.h"

/// The journal of a job behind its generation fence (docs/protocol.md, section 11): two masters
/// never both acknowledge anything, on whichever machines they run.
namespace muster {

struct JournalOwner {
  /// Identifies the machine; empty: not known, so that each start makes a generation of its own.
  std::string machine;
  /// A random id of the `muster run` that starts the master, without a line end; empty: not known.
  std::string starter;
  /// Take the job from a master that still has the journal open.
  bool take_over = false;
};

/// Opens the newest generation of the journal in `directory` if its masters ran on this machine and
/// are dead, or makes a new one from it; see OpenRocksdbJournal for the header and the errors.
///
/// Errors beyond those: kUnavailable if another master has it open, unless `take_over` is set;
/// kCancelled if the job was taken from `owner.starter`, or is taken over meanwhile.
///
/// After its sync, every Write looks whether the generation is still open. If it is not, it returns
/// kCancelled.
absl::StatusOr<std::unique_ptr<Journal>> OpenFencedJournal(const std::string& directory,
                                                           const JournalHeader& header,
                                                           const JournalOwner& owner);

/// As ReadRocksdbJournal and ReadRocksdbHeader, of the newest generation.
absl::StatusOr<StoredJournal> ReadFencedJournal(const std::string& directory);
absl::StatusOr<JournalHeader> ReadFencedHeader(const std::string& directory);

/// The machine on which this process runs.
std::string ThisMachine();

}  // namespace muster
