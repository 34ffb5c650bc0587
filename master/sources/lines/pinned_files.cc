#include "master/sources/lines/pinned_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/status.h"

namespace muster {
namespace {

constexpr char kWhatToDo[] =
    "put it back as it was, or begin again with another spec.stateDirectory";

/// The first path of sorted `a` that is not in sorted `b`, or nothing.
template <typename A, typename B>
std::string FirstMissing(const A& a, const B& b) {
  for (const auto& path : a) {
    if (!std::binary_search(b.begin(), b.end(), path)) return std::string(path);
  }
  return "";
}

struct PinnedFile {
  std::string_view path;
  SourcePin pin;
};

/// The first of `wanted` whose content occurs less often in `there` than in `wanted`; or none.
std::string FirstMissingContent(const std::vector<PinnedFile>& wanted,
                                std::vector<PinnedFile> there) {
  for (const PinnedFile& file : wanted) {
    const auto found = std::ranges::find(there, file.pin, &PinnedFile::pin);
    if (found == there.end()) return std::string(file.path);
    there.erase(found);
  }
  return "";
}

/// Names the file that differs. If the folder was moved, every path has changed, so it compares
/// contents.
absl::Status CheckMovedList(const std::vector<std::string>& files, const IndexFile& index) {
  std::vector<PinnedFile> was, now;
  for (const IndexFile::Source& source : index.sources()) was.push_back({source.path, source.pin});
  const auto pins = PinFiles(files, 0);
  for (size_t i = 0; i < files.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(pins[i].status());
    now.push_back({files[i], *pins[i]});
  }
  const bool fewer = now.size() < was.size();
  std::string change = fewer ? FirstMissingContent(was, now) : FirstMissingContent(now, was);
  if (!change.empty()) change += fewer ? " (its former path) is missing, and" : " is new, and";
  return absl::FailedPreconditionError(
      fmt::format("the job began with {} files, but now there are {}: {} the others are in another "
                  "place; {}",
                  was.size(), now.size(), change, kWhatToDo));
}

absl::Status CheckFileList(const std::vector<std::string>& files, const IndexFile& index) {
  if (files.size() == index.sources().size()) return absl::OkStatus();
  std::vector<std::string_view> was;
  for (const IndexFile::Source& source : index.sources()) was.push_back(source.path);
  std::sort(was.begin(), was.end());
  const bool moved = std::ranges::none_of(
      files, [&](const auto& file) { return std::ranges::binary_search(was, file); });
  if (moved) return CheckMovedList(files, index);
  const std::string gone = FirstMissing(was, files);
  if (files.size() < was.size() && !gone.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("the job began with {} files, but now there are {}: {} is missing; {}",
                    was.size(), files.size(), gone, kWhatToDo));
  }
  const std::string added = FirstMissing(files, was);
  return absl::FailedPreconditionError(fmt::format(
      "the job began with {} files, but now there are {}{}. The data of a job cannot change: "
      "remove the file, or begin again with another spec.stateDirectory",
      was.size(), files.size(), added.empty() ? "" : fmt::format(": {} is new", added)));
}

absl::Status CheckPin(const std::string& file, const SourcePin& pin, const SourcePin& was) {
  if (pin == was) return absl::OkStatus();
  const std::string change =
      pin.bytes != was.bytes
          ? fmt::format("it had {} bytes, but now it has {}", was.bytes, pin.bytes)
          : fmt::format("it still has {} bytes, but another content", was.bytes);
  return absl::FailedPreconditionError(
      fmt::format("{} has changed since the job began ({}); {}", file, change, kWhatToDo));
}

}  // namespace

absl::Status CheckParameters(const IndexParameters& now, const IndexFile& index) {
  const IndexParameters& was = index.parameters();
  if (was == now) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "the job began with minibatchSize {}, minibatchesPerShard {}, header {}, but now has {}, {}, "
      "{}. These fields cannot change: {}",
      was.minibatch_size, was.minibatches_per_shard, was.has_header, now.minibatch_size,
      now.minibatches_per_shard, now.has_header, kWhatToDo));
}

absl::StatusOr<std::vector<FileStamp>> LookAt(const std::vector<std::string>& files,
                                              const AliveFn& alive) {
  std::vector<FileStamp> stamps;
  for (const absl::StatusOr<FileStamp>& stamp : StampFiles(files, 0, alive)) {
    MUSTER_RETURN_IF_ERROR(stamp.status());
    stamps.push_back(*stamp);
  }
  return stamps;
}

absl::StatusOr<PinnedCheck> CheckPinnedFiles(const std::vector<std::string>& files,
                                             const IndexFile& index, const std::string& seen_path,
                                             const AliveFn& alive) {
  MUSTER_RETURN_IF_ERROR(CheckFileList(files, index));
  const std::vector<FileStamp> seen = ReadFileStamps(seen_path, files.size());
  PinnedCheck checked;
  MUSTER_ASSIGN_OR_RETURN(checked.stamps, LookAt(files, alive));
  std::vector<size_t> differ;
  std::vector<std::string> paths;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!seen.empty() && seen[i] == checked.stamps[i]) continue;
    differ.push_back(i);
    paths.push_back(files[i]);
  }
  const auto pins = PinFiles(paths, 0, alive);
  for (size_t i = 0; i < differ.size(); ++i) {
    MUSTER_RETURN_IF_ERROR(pins[i].status());
    MUSTER_RETURN_IF_ERROR(CheckPin(paths[i], *pins[i], index.sources()[differ[i]].pin));
  }
  checked.news = !differ.empty();
  return checked;
}

}  // namespace muster
