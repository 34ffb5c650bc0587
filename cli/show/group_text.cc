#include "cli/show/group_text.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/show/fit.h"
#include "cli/show/reasons.h"

namespace muster {
namespace {

/// ", about 812 steps/min". Empty if the rate is not known.
std::string StepRate(const GroupStatus& group, const std::optional<double>& records_per_second) {
  if (!records_per_second.has_value() || group.global_batch == 0) return "";
  const double steps = 60 * *records_per_second / group.global_batch;
  return fmt::format(", about {} steps/min", CountText(static_cast<uint64_t>(steps)));
}

/// The members that the others wait for. Empty while all members compute.
std::string Awaited(const GroupStatus& group) {
  std::vector<std::string> names;
  uint32_t members = 0;
  for (const GroupProcessStatus& process : group.processes) {
    if (process.standing != GroupStanding::kMember) continue;
    ++members;
    if (process.awaited) names.push_back(Printable(process.worker));
  }
  if (names.empty() || names.size() == members) return "";
  return names.size() == 1 ? names[0] : CountText(names.size(), "member");
}

std::string GroupLine(const JobStatus& status, size_t columns) {
  const GroupStatus& group = *status.group;
  std::vector<LineField> fields = {{"group: step " + CountText(group.step), 0},
                                   {fmt::format(" in attempt {}", CountText(group.attempt)), 3}};
  if (!IsTerminal(status.state)) {
    fields.push_back({", " + CountText(group.members, "member"), 0});
    fields.push_back({fmt::format(" (of {} to {})", group.members_min, group.members_max), 4});
    fields.push_back({StepRate(group, status.progress.records_per_second), 1});
  }
  fields.push_back({group.checkpoint_step == 0
                        ? ", no checkpoint"
                        : ", checkpoint of step " + CountText(group.checkpoint_step),
                    2});
  return FitLine(std::move(fields), columns) + "\n";
}

std::string TableOf(const GroupStatus& group, size_t columns) {
  uint64_t minibatches = 0;
  for (const GroupProcessStatus& process : group.processes) {
    minibatches += process.share_minibatches;
  }
  std::vector<std::vector<std::string>> rows;
  for (const GroupProcessStatus& process : group.processes) {
    rows.push_back(
        {Printable(process.worker),
         fmt::format("{}{}", ToString(process.standing), process.suspected ? ", suspected" : ""),
         std::string(ToString(process.phase)),
         process.rank.has_value() && minibatches > 0
             ? fmt::format("{} of {}", process.share_minibatches, minibatches)
             : "-",
         process.minibatch_us.has_value()
             ? fmt::format("{:.1f} ms", static_cast<double>(*process.minibatch_us) / 1e3)
             : "-",
         process.step.has_value() ? CountText(*process.step) : "-",
         process.rank.has_value() ? std::to_string(*process.rank) : "-"});
  }
  if (rows.empty()) return "";
  const std::vector<Column> heads = {{"WORKER", 0},    {"STANDING", 2}, {"PHASE", 0}, {"SHARE", 1},
                                     {"MINIBATCH", 3}, {"STEP", 4},     {"RANK", 5}};
  std::string text;
  for (const std::string& line : FitTable(heads, rows, columns)) text += line + "\n";
  return text;
}

}  // namespace

std::string GroupInOneLine(const JobSummary& job, std::optional<double> records_per_second,
                           size_t columns) {
  if (!job.group.has_value() || IsTerminal(job.state)) return "";
  const GroupStatus& group = *job.group;
  const std::string step = "group: step " + CountText(group.step);
  const std::string members = ", " + CountText(group.members, "member");
  if (!group.waits.empty()) {
    return CutText(fmt::format("{}{}, waits: {}", step, members, Printable(group.waits)), columns);
  }
  const std::string awaited = Awaited(group);
  return FitLine({{step, 0},
                  {members, 1},
                  {fmt::format(" (of {} to {})", group.members_min, group.members_max), 4},
                  {StepRate(group, records_per_second), 2},
                  {awaited.empty() ? "" : ", waits for " + awaited, 3}},
                 columns);
}

std::string GroupText(const JobStatus& status, size_t columns) {
  if (!status.group.has_value()) return "";
  const GroupStatus& group = *status.group;
  std::string text = GroupLine(status, columns);
  if (!group.waits.empty()) text += CutText("  waits: " + group.waits, columns) + "\n";
  text += TableOf(group, columns);
  Reasons reasons;
  for (const GroupProcessStatus& process : group.processes) {
    if (!process.waits.empty()) reasons.Add(process.worker, process.waits);
  }
  for (const auto& [names, reason] : reasons.All()) {
    text += CutText(fmt::format("  {}: {}", names, reason), columns) + "\n";
  }
  return text;
}

}  // namespace muster
