#include "scaler/policy/crash_loop.h"

#include <fmt/format.h>

#include "host/messages.h"
#include "host/restart_policy.h"

namespace muster::scaler {
namespace {

bool IsProgramsOwn(const NodeEnd& end) {
  const bool out_of_memory =
      end.cause == EndCause::kKernelOutOfMemory || end.cause == EndCause::kOwnOutOfMemory;
  return end.cause == EndCause::kProgram || (out_of_memory && end.memory_limit_bytes == 0);
}

Proposal RestartAsItWas(std::string policy, const NodeView& node) {
  return {.policy = std::move(policy),
          .action = Action::kRestart,
          .kind = Proposal::Kind::kRepair,
          .target = node.name,
          .before = node.limits,
          .after = node.limits,
          .ended = node.name};
}

}  // namespace

std::vector<Proposal> CrashLoopPolicy::Step(const JobView& view) {
  std::vector<Proposal> proposals;
  for (const NodeEnd& end : view.ends) {
    const NodeView* node = FindNode(view, end.node);
    if (node == nullptr || !IsProgramsOwn(end)) continue;
    uint32_t& answered = answered_[end.node];
    if (end.start <= answered) continue;
    answered = end.start;
    const RestartPolicy::Decision decision =
        RestartPolicy({.crash_loop_exits = options_.ends_max}, end.exits)
            .OnExit(end.progressed ? RestartPolicy::Progress::kMade
                                   : RestartPolicy::Progress::kNone);
    Proposal proposal = RestartAsItWas(name(), *node);
    proposal.evidence = {
        {"ends in a row without progress", static_cast<double>(decision.exits), "ends"},
        {"most that are allowed", static_cast<double>(options_.ends_max), "ends"}};
    const bool whole_machine = end.cause != EndCause::kProgram;
    const std::string how =
        whole_machine
            ? fmt::format(
                  "was killed for memory without a limit of its own (peak {}): the machine "
                  "ran out",
                  BytesText(end.memory_peak_bytes))
            : fmt::format("ended with {}", end.exit);
    if (decision.crash_loop) {
      proposal.action = Action::kStopJob;
      proposal.target = "job";
      proposal.before = proposal.after = std::monostate{};
      proposal.because = fmt::format(
          "{} {}, {} times in a row without progress: {}", node->name, how, decision.exits,
          whole_machine ? "give the job fewer nodes, or limits that fit into the machine"
                        : fmt::format("see `muster logs {}`, fix the program, and run the job "
                                      "again",
                                      node->name));
      if (!end.meaning.empty()) proposal.details = "\n  " + end.meaning + ".";
      if (!end.last_words.empty()) {
        proposal.details += "\n  Its last lines:" + Indented(end.last_words);
      }
    } else {
      proposal.because =
          fmt::format("{} {}; it starts again with the same limits", node->name, how);
    }
    proposals.push_back(std::move(proposal));
  }
  return proposals;
}

std::vector<Proposal> PlatformKillPolicy::Step(const JobView& view) {
  std::vector<Proposal> proposals;
  for (const NodeEnd& end : view.ends) {
    const NodeView* node = FindNode(view, end.node);
    const bool disrupted = end.cause == EndCause::kDisrupted;
    if (node == nullptr || (end.cause != EndCause::kPlatform && !disrupted)) continue;
    Proposal proposal = RestartAsItWas(name(), *node);
    proposal.evidence = {{"memory peak", static_cast<double>(end.memory_peak_bytes), "bytes"},
                         {"memory limit", static_cast<double>(end.memory_limit_bytes), "bytes"}};
    const std::string how =
        disrupted ? DisruptionText(end.disruption, end.disruption_text)
                  : "No counter says that memory ran out, so it was killed from outside";
    proposal.because = fmt::format(
        "{} ended with {}. {}. It starts again with the same limits, and this end does not count "
        "against it",
        node->name, end.exit, disrupted ? "Its place was taken away: " + how : how);
    proposals.push_back(std::move(proposal));
  }
  return proposals;
}

}  // namespace muster::scaler
