#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "master/journal/generations.h"

/// Internal to master/journal: the files of the generation fence (docs/protocol.md, section 11).
///
/// Each generation has a folder with RocksDB's files and two small ones. `MACHINE` says who writes
/// there; a folder whose copy is not complete lacks it. `FENCE` is empty until a newer generation
/// closes this one by writing into it, and is never emptied again. The journal's folder also has
/// `SUPERSEDED`, a line for each starter from whom the job was taken.
namespace muster {

/// Where generation `number` of the journal in `directory` is.
std::string FolderOfGeneration(const std::string& directory, uint64_t number);

/// All generations, by number. Empty if there is nothing.
absl::StatusOr<std::vector<Generation>> ListGenerations(const std::string& directory);

/// Makes the folder of generation `number`, durably. kAlreadyExists: another master was faster.
absl::Status MakeGeneration(const std::string& directory, uint64_t number);

/// Writes MACHINE, durably: the folder is complete. kAlreadyExists if it has one.
absl::Status ClaimFolder(const std::string& folder, const std::string& machine,
                         const std::string& starter);
/// Replaces MACHINE, for the next process on the same machine.
absl::Status RenewFolder(const std::string& folder, const std::string& machine,
                         const std::string& starter);

/// Closes the folder for generation `by`, durably: from now on, no look finds it open.
absl::Status CloseFolder(const std::string& folder, uint64_t by);

/// Makes an empty FENCE if there is none.
absl::Status OpenFence(const std::string& folder);

/// One look at the fence: OK if the folder is open. kCancelled, with a sentence for people, if a
/// newer generation has closed or removed it. Other errors: it is not known.
///
/// It opens the file anew each time. So NFS asks its server (close-to-open consistency).
absl::Status LookAtFence(const std::string& folder);

/// Removes what a copy that failed has written. The folder and its fence stay, so that no other
/// master takes its number. Requires: the folder is ours, and not claimed yet.
void RemoveFailedCopy(const std::string& folder);

/// The starters that were added, the last 1000. Empty if there is none.
absl::StatusOr<std::vector<std::string>> ReadSuperseded(const std::string& directory);
/// Adds one, durably. To be called before the generation that names it is removed.
absl::Status AddSuperseded(const std::string& directory, const std::string& starter);

/// Removes a generation. Of generation 1, the folder stays, because the others are in it, with
/// SUPERSEDED and the closed fence, because a master that stood still may still claim it. (It
/// cannot do so with the others: it would see the newer ones.) What cannot be removed stays.
void RemoveGeneration(const std::string& directory, uint64_t number);

/// The machine on which this process runs: the kernel's boot id. After a boot it is another one,
/// and containers of one kernel have the same. Empty if the kernel does not say.
std::string ThisMachine();

}  // namespace muster
