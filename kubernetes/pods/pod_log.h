#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace muster::kubernetes
