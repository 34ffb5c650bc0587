#include "scaler/decision/event_drafts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "host/messages.h"

namespace muster::scaler {
namespace {

std::map<std::string, double> FiguresOf(const Amount& amount, const Amount& other) {
  if (const uint32_t* workers = std::get_if<uint32_t>(&amount)) {
    return {{"workers", static_cast<double>(*workers)}};
  }
  const Resources* limits = std::get_if<Resources>(&amount);
  if (limits == nullptr) return {};
  const Resources* others = std::get_if<Resources>(&other);
  std::map<std::string, double> figures;
  if (limits->cpus > 0 || (others != nullptr && others->cpus > 0)) figures["cpus"] = limits->cpus;
  if (limits->memory_bytes > 0 || (others != nullptr && others->memory_bytes > 0)) {
    figures["memory_bytes"] = static_cast<double>(limits->memory_bytes);
  }
  return figures;
}

std::string EndText(const NodeEnd& end) {
  const std::string limit =
      end.memory_limit_bytes > 0
          ? fmt::format("at its memory limit of {}", BytesText(end.memory_limit_bytes))
          : "although it has no limit: the machine ran out of memory";
  const std::string peak = BytesText(end.memory_peak_bytes);
  switch (end.cause) {
    case EndCause::kKernelOutOfMemory:
      return fmt::format("{} was killed by the kernel for its memory, {} (peak {})", end.node,
                         limit, peak);
    case EndCause::kOwnOutOfMemory:
      return fmt::format(
          "{} was killed by Muster for its memory, {} (peak {}), because the kernel enforces no "
          "limit here",
          end.node, limit, peak);
    case EndCause::kProgram:
      return fmt::format("{} was ended by its own program ({})", end.node, end.exit);
    case EndCause::kPlatform:
      return fmt::format("{} was killed from outside ({}), and not for its memory", end.node,
                         end.exit);
    case EndCause::kAsked:
      return fmt::format("{} ended after Muster had told it to ({})", end.node, end.exit);
    case EndCause::kNotStarted:
      return fmt::format("{} could not be started, because the machine lacks something: {}",
                         end.node, FirstLine(end.last_words));
    case EndCause::kDisrupted:
      return fmt::format("{} was taken away: {} ({})", end.node,
                         DisruptionText(end.disruption, end.disruption_text), end.exit);
    case EndCause::kClean:
      break;
  }
  return fmt::format("{} ended by itself, with nothing left to do ({})", end.node, end.exit);
}

}  // namespace

std::optional<double> FigureOf(const rest::Event& event, const std::string& name) {
  const auto found = std::ranges::find(event.evidence, name, &rest::Evidence::name);
  if (found == event.evidence.end() || !std::isfinite(found->value)) return std::nullopt;
  return found->value;
}

void AddFigure(const rest::Evidence& figure, rest::Event* event) {
  if (!FigureOf(*event, figure.name).has_value()) event->evidence.push_back(figure);
}

std::optional<Action> ActionOf(const std::string& name) {
  for (const Action action : {Action::kRestart, Action::kResize, Action::kScale, Action::kStopJob,
                              Action::kDrain, Action::kDumpStacks}) {
    if (ToString(action) == name) return action;
  }
  return std::nullopt;
}

Change ChangeOf(const Amount& before, const Amount& after) {
  return {.before = FiguresOf(before, after), .after = FiguresOf(after, before)};
}

Resources LimitsOf(const std::map<std::string, double>& figures) {
  const auto value = [&](const char* name) {
    const auto found = figures.find(name);
    return found != figures.end() && found->second > 0 ? found->second : 0;
  };
  return {.cpus = value("cpus"), .memory_bytes = static_cast<uint64_t>(value("memory_bytes"))};
}

rest::Event ExitEvent(const NodeEnd& end) {
  rest::Event event{.kind = "exit", .target = end.node, .because = EndText(end)};
  event.evidence = {{kStartFigure, static_cast<double>(end.start), "", 0},
                    {kPidFigure, static_cast<double>(end.pid), "", 0},
                    {"memory peak", static_cast<double>(end.memory_peak_bytes), "bytes", 0},
                    {"memory limit", static_cast<double>(end.memory_limit_bytes), "bytes", 0}};
  return event;
}

rest::Event DecisionEvent(const Decision& decision, uint64_t cause_id) {
  const Proposal& proposal = decision.proposal;
  Change change = ChangeOf(proposal.before, proposal.after);
  rest::Event event{.kind = "decision",
                    .policy = proposal.policy,
                    .target = proposal.target,
                    .action = ToString(proposal.action),
                    .before = std::move(change.before),
                    .after = std::move(change.after),
                    .because = proposal.because,
                    .dry_run = decision.verdict == Decision::Verdict::kDryRun,
                    .cause_id = cause_id};
  for (const Evidence& evidence : proposal.evidence) {
    event.evidence.push_back({evidence.name, evidence.value, evidence.unit,
                              std::chrono::duration<double>(evidence.window).count()});
  }
  if (decision.verdict == Decision::Verdict::kRefused) {
    event.kind = "note";
    event.because = fmt::format("not done, because {}: {}", decision.remark, proposal.because);
  } else if (!decision.remark.empty()) {
    event.because += "; " + decision.remark;
  }
  return event;
}

}  // namespace muster::scaler
