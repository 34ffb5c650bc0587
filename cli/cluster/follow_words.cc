#include "cli/cluster/follow_words.h"

#include <fmt/format.h>

#include "cli/show/output.h"

namespace muster::cluster {
namespace {

using State = RunOutcome::State;

constexpr State kStates[] = {State::kSucceeded,   State::kFailed,  State::kDrained,
                             State::kCancelled,   State::kStopped, State::kBadInput,
                             State::kUnrestorable};

constexpr std::string_view kClaimsStay =
    "As long as its claims are there, the same command makes it again, and it continues";

State StateOf(const JobLook& look) {
  for (const State state : kStates) {
    if (look.outcome == ToString(state) && look.outcome != "failed") return state;
  }
  // If the run left no words, its exit code is the best source.
  for (const State state : kStates) {
    if (look.exit_code && *look.exit_code == ExitCode(state)) return state;
  }
  return State::kFailed;
}

}  // namespace

std::string SummaryIn(std::string_view log, const std::string& job) {
  const std::string head = job + ": ";
  for (size_t end = log.size(); end != 0;) {
    const size_t line_end = log.rfind('\n', end - 1);
    const size_t begin = line_end == std::string_view::npos ? 0 : line_end + 1;
    const std::string_view line = log.substr(begin, log.find('\n', begin) - begin);
    if (line.starts_with(head) && line.find(" after ") != std::string_view::npos) {
      return std::string(log.substr(begin));
    }
    end = line_end == std::string_view::npos ? 0 : line_end;
  }
  return "";
}

RunOutcome OutcomeOf(const JobLook& look) {
  return {.state = StateOf(look), .reason = look.why};
}

std::string OptionsFor(const std::string& job, const ClusterTarget& target) {
  std::string text = fmt::format("--job {} --on kubernetes", job);
  if (!target.context.empty()) text += fmt::format(" --context {}", target.context);
  if (!target.ns.empty()) text += fmt::format(" --namespace {}", target.ns);
  if (!target.kubeconfig.empty()) text += fmt::format(" --kubeconfig {}", target.kubeconfig);
  return text;
}

std::string NewsOf(const JobLook& before, const JobLook& now, const std::string& asks,
                   const std::string& deletes) {
  const bool is_other_pod = now.pod != before.pod && !now.pod.empty();
  if (now.stage == before.stage && now.why == before.why && !is_other_pod) return "";
  switch (now.stage) {
    case JobStage::kRunning:
      return fmt::format("the job's pod {} runs{}", now.pod,
                         now.former.empty() || before.stage == JobStage::kAbsent
                             ? ""
                             : fmt::format("; the one before was {}", now.former));
    case JobStage::kWaiting:
      return fmt::format("the job waits: {}", now.why);
    case JobStage::kPending:
      return fmt::format(
          "the job's pod {}: {}{}", now.pod, now.why,
          now.is_stuck ? fmt::format(". It stays so until somebody changes it; `{}` takes the "
                                     "job away, and its state stays",
                                     deletes)
                       : "");
    case JobStage::kDeleted:
      return fmt::format("somebody deletes the job. {}", kClaimsStay);
    case JobStage::kAbsent:
      return fmt::format("the job is not there any more: somebody deleted it. {}", kClaimsStay);
    case JobStage::kReplaced:
      return "somebody ended the job, and made another one of the same name, which is not "
             "followed: "
             "how this one ended is not known here";
    case JobStage::kEnded:
      return fmt::format("the job has {}; its log: `muster logs {}`", Describe(now), asks);
  }
  return "";
}

std::string LeavingText(const JobLook& look, const std::string& job, const std::string& asks,
                        const std::string& deletes) {
  std::string text =
      fmt::format("the job {} goes on without this view. The same command follows it again; ", job);
  if (look.stage != JobStage::kRunning) {
    return text + fmt::format("`{}` takes it away, and its state stays", deletes);
  }
  return text + fmt::format(
                    "`muster drain {}` ends it so that it can continue later, and `muster cancel "
                    "{}` ends it at once",
                    asks, asks);
}

}  // namespace muster::cluster
