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

std::string Heading(const Report& report) {
  const std::string under =
      fmt::format("{} and {}, seed {}, {}", CountText(Sum(report.storm.kills), "kill"),
                  CountText(Sum(report.storm.pauses), "pause"), report.seed,
                  DurationText(report.storm.elapsed));
  if (!report.judgement.has_value()) {
    return fmt::format("NOT PROVEN: {}\n  ({})\n", report.problem, under);
  }
  return fmt::format("{}: {} record trainings under {}\n",
                     report.judgement->verdict.ok()
                         ? "Nothing is lost, unexpected or duplicated"
                         : "WRONG: what was trained is not what is in the weights",
                     CountText(report.workload.records * report.workload.epochs), under);
}

std::string VerdictText(const Judgement& judgement) {
  const Verdict& verdict = judgement.verdict;
  std::string text;
  const auto line = [&text](std::string_view name, uint64_t count, std::string_view meaning) {
    text += fmt::format("  {:<13}{:>12}   {}\n", name, CountText(count), meaning);
  };
  line("attempts", verdict.attempts, "record trainings that workers began");
  line("acknowledged", verdict.acknowledged, "record trainings that the ledger calls committed");
  line("re-delivered", verdict.redelivered,
       fmt::format("attempts beyond the first ({}; the ledger counts {}, and may be {} off)",
                   CountText(verdict.redelivered_minibatches, "minibatch", "minibatches"),
                   CountText(judgement.ledger_redelivered_minibatches),
                   CountText(judgement.redelivered_tolerance)));
  line("lost", verdict.lost, "effects acknowledged and not in the weights");
  line("unexpected", verdict.unexpected, "effects in the weights that no worker attempted");
  line("duplicated", verdict.duplicated, "effects beyond the first");
  line("wrong rows", verdict.wrong_rows, fmt::format("of {} compared", CountText(verdict.rows)));
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
  json["verdict"] = verdict.ok() ? "ok" : "wrong";
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
  json["rare_paths"] = {{"replayed_shards", judgement.paths.replayed_shards},
                        {"reverified_runs", judgement.paths.reverified_runs},
                        {"parts_skipped", judgement.paths.parts_skipped},
                        {"reasserted_leases", judgement.paths.reasserted_leases}};
  json["paths_not_taken"] = nlohmann::json::array();
  for (const std::string_view name : NotTaken(judgement.paths)) {
    json["paths_not_taken"].push_back(std::string(name));
  }
  return json;
}

std::string ReportText(const Report& report) {
  std::string text = Heading(report);
  if (report.judgement.has_value()) text += VerdictText(*report.judgement);
  text += fmt::format("  kills        {}\n", ByRoleText(report.storm.kills));
  text += fmt::format("  pauses       {}\n", ByRoleText(report.storm.pauses));
  if (report.judgement.has_value()) {
    const Judgement& judgement = *report.judgement;
    text += fmt::format(
        "  recovery     {}; {}; {}; {} (median / worst)\n",
        RecoveryText("worker", judgement.worker), RecoveryText("ps", judgement.server),
        RecoveryText("master", judgement.master), RecoveryText("scaler", judgement.scaler));
    const RarePaths& paths = judgement.paths;
    text += fmt::format(
        "  rare paths   replayed_shards {}, reverified_runs {}, parts_skipped {}, "
        "reasserted_leases {}\n",
        paths.replayed_shards, paths.reverified_runs, paths.parts_skipped, paths.reasserted_leases);
    if (const auto missed = NotTaken(paths); !missed.empty()) {
      text +=
          fmt::format("  The run proves less than it could: not taken: {}. More --kills help.\n",
                      fmt::join(missed, ", "));
    }
  }
  if (!report.directory.empty()) text += fmt::format("  kept         {}\n", report.directory);
  return text;
}

}  // namespace muster::verify
