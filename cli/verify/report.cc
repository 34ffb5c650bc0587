#include "cli/verify/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/text.h"
#include "cli/show/progress.h"

namespace muster::verify {
namespace {

nlohmann::json ByRoleToJson(const ByRole& counts) {
  nlohmann::json json = nlohmann::json::object();
  for (const Role role : kRoles) json[std::string(ToString(role))] = counts[size_t(role)];
  return json;
}

nlohmann::json RecoveryToJson(const RecoveryTimes& times) {
  if (times.count == 0) return {{"count", 0}, {"median", nullptr}, {"worst", nullptr}};
  return {{"count", times.count}, {"median", times.median_ms}, {"worst", times.worst_ms}};
}

nlohmann::json GroupToJson(const GroupJudgement& group) {
  const GroupVerdict& verdict = group.verdict;
  return {{"steps", verdict.steps},
          {"attempts", group.changes.attempts},
          {"rollbacks", group.changes.rollbacks},
          {"in_no_step", verdict.in_no_step},
          {"in_two_steps", verdict.in_two_steps},
          {"states_compared", verdict.compared},
          {"states_different", verdict.different},
          {"workers", group.workers},
          {"members", verdict.members},
          {"members_different", verdict.members_different},
          {"wrong", verdict.wrong}};
}

void AddPaths(const RarePaths& paths, nlohmann::json* json) {
  (*json)["rare_paths"] = {{"replayed_shards", paths.replayed_shards},
                           {"reverified_runs", paths.reverified_runs},
                           {"parts_skipped", paths.parts_skipped},
                           {"reasserted_leases", paths.reasserted_leases}};
  (*json)["paths_not_taken"] = nlohmann::json::array();
  for (const std::string_view name : NotTaken(paths)) {
    (*json)["paths_not_taken"].push_back(std::string(name));
  }
}

std::string ByRoleText(const ByRole& counts) {
  std::vector<std::string> texts;
  for (const Role role : kRoles) {
    texts.push_back(fmt::format("{} {}", ToString(role), counts[size_t(role)]));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string RecoveryText(std::string_view role, const RecoveryTimes& times) {
  if (times.count == 0) return fmt::format("{} -", role);
  return fmt::format("{} {:.0f} / {:.0f} ms ({})", role, times.median_ms, times.worst_ms,
                     times.count);
}

std::string_view Claim(const Judgement& judgement) {
  if (!judgement.ok()) return "WRONG: what was trained is not what is in the weights";
  return judgement.group.has_value()
             ? "Every record is in one step, and the weights are those of the undisturbed run"
             : "Nothing is lost, unexpected or duplicated";
}

std::string Heading(const Report& report) {
  const std::string under =
      fmt::format("{} and {}, seed {}, {}", CountText(Sum(report.storm.kills), "kill"),
                  CountText(Sum(report.storm.pauses), "pause"), report.seed,
                  DurationText(report.storm.elapsed));
  if (!report.judgement.has_value()) {
    return fmt::format("NOT PROVEN: {}\n  ({})\n", report.problem, under);
  }
  return fmt::format("{}: {} record trainings under {}\n", Claim(*report.judgement),
                     CountText(report.workload.records * report.workload.epochs), under);
}

std::string Line(std::string_view name, uint64_t count, std::string_view meaning) {
  return fmt::format("  {:<13}{:>12}   {}\n", name, CountText(count), meaning);
}

std::string GroupText(const GroupJudgement& group) {
  const GroupVerdict& verdict = group.verdict;
  std::string text =
      Line("steps", verdict.steps,
           fmt::format("made in {}; the group went back to an older step {}",
                       CountText(group.changes.attempts, "attempt"),
                       CountText(group.changes.rollbacks, "time"))) +
      Line("in no step", verdict.in_no_step, "record trainings") +
      Line("in two steps", verdict.in_two_steps, "record trainings") +
      Line(
          "other weights", verdict.different,
          fmt::format("of {} states after a step; their bits are compared with the undisturbed run",
                      CountText(verdict.compared))) +
      Line("members", verdict.members,
           fmt::format("of {} had the weights of the last step; {} with other bits than the "
                       "undisturbed run",
                       group.workers, verdict.members_different));
  for (const std::string& wrong : verdict.wrong) text += fmt::format("  wrong: {}\n", wrong);
  return text;
}

std::string RedeliveredText(const Judgement& judgement) {
  // A group's ledger does not count minibatches that a new attempt of a step computes again.
  const std::string ledger = judgement.group.has_value()
                                 ? ""
                                 : fmt::format("; the ledger counts {}, and may be {} off",
                                               CountText(judgement.ledger_redelivered_minibatches),
                                               CountText(judgement.redelivered_tolerance));
  return fmt::format(
      "attempts beyond the first ({}{})",
      CountText(judgement.verdict.redelivered_minibatches, "minibatch", "minibatches"), ledger);
}

std::string PathsText(const RarePaths& paths) {
  std::string text = fmt::format(
      "  rare paths   replayed_shards {}, reverified_runs {}, parts_skipped {}, "
      "reasserted_leases {}\n",
      paths.replayed_shards, paths.reverified_runs, paths.parts_skipped, paths.reasserted_leases);
  if (const auto missed = NotTaken(paths); !missed.empty()) {
    text += fmt::format("  The run proves less than it could: not taken: {}. More --kills help.\n",
                        fmt::join(missed, ", "));
  }
  return text;
}

std::string VerdictText(const Judgement& judgement) {
  const Verdict& verdict = judgement.verdict;
  std::string text = Line("attempts", verdict.attempts, "record trainings that workers began") +
                     Line("acknowledged", verdict.acknowledged,
                          "record trainings that the ledger calls committed") +
                     Line("re-delivered", verdict.redelivered, RedeliveredText(judgement));
  text +=
      Line("lost", verdict.lost, "effects acknowledged and not in the weights") +
      Line("unexpected", verdict.unexpected, "effects in the weights that no worker attempted") +
      Line("duplicated", verdict.duplicated, "effects beyond the first") +
      Line("wrong rows", verdict.wrong_rows,
           fmt::format("of {} compared", CountText(verdict.rows)));
  for (const WrongRow& row : verdict.samples) {
    text += fmt::format("    {}, key {}: {:.200}; should be {:.200}\n", row.table, row.key,
                        row.found, row.expected);
  }
  for (const std::string& disagreement : verdict.disagreements) {
    text += fmt::format("  disagreement: {}\n", disagreement);
  }
  return text;
}

}  // namespace

nlohmann::json ReportToJson(const Report& report) {
  const StormResult& storm = report.storm;
  nlohmann::json json = {{"verdict", "not proven"},
                         {"problem", report.problem},
                         {"seed", report.seed},
                         {"records", report.workload.records},
                         {"epochs", report.workload.epochs},
                         {"kills", Sum(storm.kills)},
                         {"kills_by_role", ByRoleToJson(storm.kills)},
                         {"pauses", Sum(storm.pauses)},
                         {"pauses_by_role", ByRoleToJson(storm.pauses)},
                         {"seconds", static_cast<double>(storm.elapsed.count()) / 1000},
                         {"directory", report.directory}};
  if (!report.judgement.has_value()) return json;
  const Judgement& judgement = *report.judgement;
  const Verdict& verdict = judgement.verdict;
  json["verdict"] = judgement.ok() ? "ok" : "wrong";
  json["attempts"] = verdict.attempts;
  json["acknowledged"] = verdict.acknowledged;
  json["redelivered"] = verdict.redelivered;
  json["redelivered_minibatches"] = {{"workers", verdict.redelivered_minibatches},
                                     {"ledger", judgement.ledger_redelivered_minibatches},
                                     {"tolerance", judgement.redelivered_tolerance}};
  json["lost"] = verdict.lost;
  json["unexpected"] = verdict.unexpected;
  json["duplicated"] = verdict.duplicated;
  json["rows"] = verdict.rows;
  json["wrong_rows"] = verdict.wrong_rows;
  json["disagreements"] = verdict.disagreements;
  json["samples"] = nlohmann::json::array();
  for (const WrongRow& row : verdict.samples) {
    json["samples"].push_back(
        {{"table", row.table}, {"key", row.key}, {"expected", row.expected}, {"found", row.found}});
  }
  json["recovery_ms"] = {{"worker", RecoveryToJson(judgement.worker)},
                         {"ps", RecoveryToJson(judgement.server)},
                         {"master", RecoveryToJson(judgement.master)},
                         {"scaler", RecoveryToJson(judgement.scaler)}};
  if (judgement.group.has_value()) {
    json["group"] = GroupToJson(*judgement.group);
  } else {
    AddPaths(judgement.paths, &json);
  }
  return json;
}

std::string ReportText(const Report& report) {
  std::string text = Heading(report);
  const std::optional<Judgement>& judgement = report.judgement;
  if (judgement.has_value() && judgement->group.has_value()) text += GroupText(*judgement->group);
  if (judgement.has_value()) text += VerdictText(*judgement);
  text += fmt::format("  kills        {}\n", ByRoleText(report.storm.kills));
  text += fmt::format("  pauses       {}\n", ByRoleText(report.storm.pauses));
  if (judgement.has_value()) {
    text += fmt::format(
        "  recovery     {}; {}; {}; {} (median / worst)\n",
        RecoveryText("worker", judgement->worker), RecoveryText("ps", judgement->server),
        RecoveryText("master", judgement->master), RecoveryText("scaler", judgement->scaler));
    if (!judgement->group.has_value()) text += PathsText(judgement->paths);
  }
  if (!report.directory.empty()) text += fmt::format("  kept         {}\n", report.directory);
  return text;
}

}  // namespace muster::verify
