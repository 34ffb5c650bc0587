#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "host/node_host.h"
#include "kubernetes/model/resource.h"
#include "kubernetes/pods/pod_facts.h"

/// Logs of pods, as pieces of a node's log. Pure, thread-safe functions.
///
/// Kubernetes knows no position in a log, only times. So the offset of a LogQuestion and of a
/// LogPiece is the time of the line before, in nanoseconds since 1970: lines after it are asked
/// for.
namespace muster::kubernetes {

struct StampedLine {
  uint64_t at_ns = 0;
  std::string text;
};

/// The whole lines of a log with timestamps. A line without one has that of the line before.
std::vector<StampedLine> ParseStampedLines(std::string_view log);

/// Asks for what `question` needs of one pod's log; `lines` of the last ones if it has no offset.
LogQuery QueryOf(const LogQuestion& question, uint32_t lines);

/// False if a pod ended before that time, so that nobody needs to ask for its lines.
bool MayHaveLinesAfter(const PodFacts& pod, uint64_t offset);

/// The answer, of the lines of a node's pods, the oldest first. `is_cut`: there was more than the
/// query's limit of bytes. Lines of one instant stay together, and at least one line is given.
LogPiece PieceOf(std::vector<StampedLine> lines, const LogQuestion& question, bool is_cut);

/// The answer from the logs of a node's pods, the newest first. A pod that has no log is passed
/// over. `read` gives the log of the pod with this name; other errors of it are returned.
absl::StatusOr<LogPiece> ReadPodLogs(
    const std::vector<PodFacts>& pods, const LogQuestion& question,
    const std::function<absl::StatusOr<std::string>(const std::string& pod, const LogQuery& query)>&
        read);

}  // namespace muster::kubernetes
