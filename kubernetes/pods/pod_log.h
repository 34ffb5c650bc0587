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
/// Kubernetes knows no positions in a log, only times. So the offset in a LogQuestion and in a
/// LogPiece is the time of the last line before it, in nanoseconds since 1970. The question asks
/// for lines after that time.
namespace muster::kubernetes {

struct StampedLine {
  uint64_t at_ns = 0;
  std::string text;
};

/// Parses the complete lines of a log with timestamps. A line without a timestamp gets that of the
/// line before.
std::vector<StampedLine> ParseStampedLines(std::string_view log);

/// The request for what `question` needs of one pod's log. Without an offset, it asks for the last
/// `lines` lines.
LogQuery QueryOf(const LogQuestion& question, uint32_t lines);

/// False if a pod ended before that time, so that nobody needs to ask for its lines.
bool MayHaveLinesAfter(const PodFacts& pod, uint64_t offset);

/// The answer, made of the lines of a node's pods, oldest first. `is_cut` says that there was more
/// than the query's limit of bytes. Lines with the same time stay together, and the answer has at
/// least one line.
LogPiece PieceOf(std::vector<StampedLine> lines, const LogQuestion& question, bool is_cut);

/// The answer from the logs of a node's pods, newest pod first. Pods without a log are skipped.
/// `read` returns the log of the pod with this name. Its other errors are returned.
absl::StatusOr<LogPiece> ReadPodLogs(
    const std::vector<PodFacts>& pods, const LogQuestion& question,
    const std::function<absl::StatusOr<std::string>(const std::string& pod, const LogQuery& query)>&
        read);

}  // namespace muster::kubernetes
