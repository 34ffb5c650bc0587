#include "master/journal/journal_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr char kMachine[] = "/MACHINE";
constexpr char kFence[] = "/FENCE";
constexpr char kSuperseded[] = "/SUPERSEDED";
constexpr uint64_t kSmallFileMax = 4096;
/// Only those of late are still there to start again.
constexpr size_t kSupersededMax = 1'000;
constexpr uint64_t kSupersededBytesMax = 1 << 20;

/// Of "g12".
std::optional<uint64_t> NumberIn(const std::string& name) {
  uint64_t number = 0;
  const char* const end = name.data() + name.size();
  if (name.size() < 2 || name[0] != 'g') return std::nullopt;
  const auto [rest, error] = std::from_chars(name.data() + 1, end, number);
  if (error != std::errc() || rest != end || number < 2) return std::nullopt;
  return number;
}

/// Empty if it is missing.
absl::StatusOr<std::string> ReadSmall(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kSmallFileMax);
  if (absl::IsNotFound(text.status())) return std::string();
  return text;
}

absl::Status Read(const std::string& folder, Generation* generation) {
  MUSTER_ASSIGN_OR_RETURN(const std::string owner, ReadSmall(folder + kMachine));
  MUSTER_ASSIGN_OR_RETURN(const std::string fence, ReadSmall(folder + kFence));
  generation->closed = !fence.empty();
  if (owner.empty()) return absl::OkStatus();
  const size_t line = owner.find('\n');
  if (line == std::string::npos || owner.back() != '\n') {
    return absl::DataLossError(fmt::format(
        "{}{} is damaged. It says on which machine the journal in this folder is written. If no "
        "other master of this job runs anywhere, delete it",
        folder, kMachine));
  }
  generation->complete = true;
  generation->owned = true;
  generation->machine = owner.substr(0, line);
  generation->starter = owner.substr(line + 1, owner.size() - line - 2);
  return absl::OkStatus();
}

/// All files of the folder, but none in folders below it, and not those of the fence.
void RemoveFiles(const std::string& folder) {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    const std::string name = "/" + it->path().filename().string();
    if (it->is_regular_file(ignored) && name != kFence && name != kSuperseded) {
      files.push_back(it->path());
    }
  }
  for (const fs::path& file : files) fs::remove(file, ignored);
}

/// Whether the folder itself has files of a journal.
bool HasJournal(const std::string& directory) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name == "CURRENT" || name.ends_with(".log") || name.ends_with(".sst")) return true;
  }
  return false;
}

std::string Line(const std::string& machine, const std::string& starter) {
  return fmt::format("{}\n{}\n", machine, starter);
}

}  // namespace

std::string FolderOfGeneration(const std::string& directory, uint64_t number) {
  return number == 1 ? directory : fmt::format("{}/g{}", directory, number);
}

absl::StatusOr<std::vector<Generation>> ListGenerations(const std::string& directory) {
  std::vector<Generation> generations;
  Generation first;
  MUSTER_RETURN_IF_ERROR(Read(directory, &first));
  // Versions before the fence had this one alone, and wrote no MACHINE.
  first.complete = first.complete || HasJournal(directory);
  if (first.complete || first.closed) generations.push_back(first);
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::optional<uint64_t> number = NumberIn(it->path().filename().string());
    if (number.has_value()) generations.push_back({.number = *number});
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return ErrnoStatus(error.value(), fmt::format("cannot list {}", directory));
  }
  for (Generation& generation : generations) {
    if (generation.number == 1) continue;
    MUSTER_RETURN_IF_ERROR(Read(FolderOfGeneration(directory, generation.number), &generation));
  }
  std::ranges::sort(generations, {}, &Generation::number);
  return generations;
}

absl::Status MakeGeneration(const std::string& directory, uint64_t number) {
  const std::string folder = FolderOfGeneration(directory, number);
  MUSTER_ASSIGN_OR_RETURN(const bool made, MakeDirectory(folder));
  if (!made) return absl::AlreadyExistsError(folder);
  return SyncPath(directory);
}

absl::Status ClaimFolder(const std::string& folder, const std::string& machine,
                         const std::string& starter) {
  // Linked, because a link never replaces another master's file, unlike a rename.
  const std::string path = folder + kMachine;
  const std::string written =
      fmt::format("{}.{:016x}", path, std::hash<std::string>()(Line(machine, starter)));
  MUSTER_FAILPOINT_OR_RETURN("generation.before-claim");
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(written, Line(machine, starter)));
  const absl::Status linked = LinkPath(written, path);
  RemoveFile(written);
  MUSTER_RETURN_IF_ERROR(linked);
  MUSTER_FAILPOINT_OR_RETURN("generation.after-claim");
  return SyncPath(folder);
}

absl::Status RenewFolder(const std::string& folder, const std::string& machine,
                         const std::string& starter) {
  return WriteFileAtomically(folder + kMachine, Line(machine, starter));
}

absl::Status CloseFolder(const std::string& folder, uint64_t by) {
  const std::string path = folder + kFence;
  {
    // Written in place: its owner may make it at the same time, but never writes into it.
    MUSTER_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path));
    MUSTER_RETURN_IF_ERROR(file.WriteAt(0, fmt::format("closed by generation {}\n", by)));
  }
  MUSTER_RETURN_IF_ERROR(SyncPath(path));
  return SyncPath(folder);
}

absl::Status OpenFence(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(const OutputFile file, OutputFile::Open(folder + kFence));
  return SyncPath(folder);
}

absl::Status LookAtFence(const std::string& folder) {
  const absl::StatusOr<std::string> fence = ReadFile(folder + kFence, kSmallFileMax);
  // A name that is gone, or a file that another machine has removed (ESTALE).
  const bool removed = absl::IsNotFound(fence.status()) ||
                       Message(fence.status()).find("Stale") != std::string_view::npos;
  if (!removed && !fence.ok()) return fence.status();
  if (!removed && fence->empty()) return absl::OkStatus();
  return absl::CancelledError(fmt::format(
      "another master has taken over the job, so this one ends: the journal in {} {}. Nothing that "
      "was acknowledged is lost, and the job continues there",
      folder,
      removed ? "was removed" : fmt::format("was {}", fence->substr(0, fence->find('\n')))));
}

void RemoveFailedCopy(const std::string& folder) {
  RemoveFiles(folder);
}

absl::StatusOr<std::vector<std::string>> ReadSuperseded(const std::string& directory) {
  const absl::StatusOr<std::string> text = ReadFile(directory + kSuperseded, kSupersededBytesMax);
  std::vector<std::string> starters;
  if (absl::IsNotFound(text.status())) return starters;
  MUSTER_RETURN_IF_ERROR(text.status());
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) starters.push_back(line);
  return starters;
}

absl::Status AddSuperseded(const std::string& directory, const std::string& starter) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> starters, ReadSuperseded(directory));
  if (std::ranges::count(starters, starter) > 0) return absl::OkStatus();
  starters.push_back(starter);
  if (starters.size() > kSupersededMax) starters.erase(starters.begin());
  return WriteFileAtomically(directory + kSuperseded,
                             fmt::format("{}\n", fmt::join(starters, "\n")));
}

void RemoveGeneration(const std::string& directory, uint64_t number) {
  if (number == 1) return RemoveFiles(directory);
  std::error_code ignored;
  fs::remove_all(FolderOfGeneration(directory, number), ignored);
}

std::string ThisMachine() {
  absl::StatusOr<std::string> id = ReadFile("/proc/sys/kernel/random/boot_id", kSmallFileMax);
  if (!id.ok()) return "";
  while (!id->empty() && id->back() == '\n') id->pop_back();
  return *std::move(id);
}

}  // namespace muster
