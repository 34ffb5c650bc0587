#include "cli/steer/event_text.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/show/fit.h"
#include "cli/show/json_output.h"
#include "host/resources.h"

namespace muster::steer {
namespace {

using scaler::rest::Event;
using scaler::rest::Explanation;

/// The unit of a field of `before` and `after`, and its name for people.
std::pair<std::string, std::string> NameAndUnit(const std::string& field) {
  static constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"_bytes", "bytes"}, {"_per_second", "1/s"}, {"_seconds", "s"}, {"_s", "s"}};
  std::string name = field;
  std::string unit;
  for (const auto& [suffix, its_unit] : kUnits) {
    if (!name.ends_with(suffix)) continue;
    name.resize(name.size() - suffix.size());
    unit = its_unit;
    break;
  }
  if (name == "records" && unit == "1/s") unit = "records/s";
  for (char& c : name) {
    if (c == '_') c = ' ';
  }
  return {name, unit};
}

/// A figure of `before` or `after`, as text.
std::string AmountText(const std::string& field, double value, const std::string& unit) {
  const bool is_limit = field == "memory_bytes" || field == "cpus";
  return is_limit && value == 0 ? "not limited" : FigureText(value, unit);
}

std::string DryRunText(const Event& event) {
  return event.dry_run ? " [dry run: not done]" : "";
}

/// The event as one line below another event.
std::string ShortLine(const Event& event) {
  return fmt::format("  #{} {} {}{}  {}\n", event.id, WallToText(event.wall_us), event.kind,
                     event.target.empty() ? "" : " " + event.target, EventWords(event));
}

std::string EvidenceText(const Event& event) {
  std::vector<std::vector<std::string>> rows = {{"  EVIDENCE", "VALUE", "TAKEN"}};
  for (const scaler::rest::Evidence& figure : event.evidence) {
    rows.push_back(
        {"  " + figure.name, FigureText(figure.value, figure.unit),
         figure.window_s > 0 ? fmt::format("over {:g} s", figure.window_s) : "at that moment"});
  }
  return FormatTable(rows);
}

std::string VerdictText(const std::string& verdict) {
  if (verdict == "helped") return "It helped.";
  if (verdict == "no-change") return "No change was seen.";
  if (verdict == "worse") return "It made things worse.";
  return "Whether it helped is not known.";
}

std::string WhoText(const Event& event) {
  if (event.kind == "decision") return fmt::format("decision of the policy {}", event.policy);
  if (event.kind == "action") return "a person's order";
  if (event.kind == "exit") return "the end of a process";
  if (event.kind == "outcome") return "what came of an earlier event";
  return event.policy.empty() ? event.kind : fmt::format("{} of {}", event.kind, event.policy);
}

}  // namespace

std::string FigureText(double value, const std::string& unit) {
  if (!std::isfinite(value)) return "-";
  if (unit == "bytes" && value >= 0) return BytesText(static_cast<uint64_t>(value));
  if (unit == "bytes/s") {
    return fmt::format("{}{}/s", value < 0 ? "-" : "",
                       BytesText(static_cast<uint64_t>(std::abs(value))));
  }
  if (unit == "ratio" && value >= 0 && value <= 1) return fmt::format("{:.3g} %", value * 100);
  if (unit == "ratio") return fmt::format("{:.3g} times", value);
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  const std::string number = whole ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
  if (unit.empty()) return number;  // it may be a kind of name, such as a pid
  const bool large = value >= 1'000 && value < 1e15;
  return fmt::format("{} {}",
                     large ? CountText(static_cast<uint64_t>(std::llround(value))) : number, unit);
}

std::string ChangeText(const Event& event) {
  std::set<std::string> fields;
  for (const auto& [field, value] : event.before) fields.insert(field);
  for (const auto& [field, value] : event.after) fields.insert(field);
  std::string text;
  for (const std::string& field : fields) {
    const auto [name, unit] = NameAndUnit(field);
    const auto before = event.before.find(field);
    const auto after = event.after.find(field);
    text += fmt::format("{}{} ", text.empty() ? "" : ", ", name);
    if (before == event.before.end()) {
      text += AmountText(field, after->second, unit);
    } else if (after == event.after.end() || after->second == before->second) {
      text += AmountText(field, before->second, unit);
    } else {
      text += fmt::format("{} -> {}", AmountText(field, before->second, unit),
                          AmountText(field, after->second, unit));
    }
  }
  return text;
}

std::string EventWords(const Event& event) {
  std::string words = event.action;
  if (!event.verdict.empty()) {
    words += fmt::format("{}{} (of #{})", words.empty() ? "" : ": ", event.verdict, event.cause_id);
  }
  if (const std::string change = ChangeText(event); !change.empty()) {
    words += fmt::format("{}{}", words.empty() ? "" : ", ", change);
  }
  if (!event.policy.empty()) {
    words += fmt::format("{}({})", words.empty() ? "" : " ", event.policy);
  }
  if (!event.because.empty()) {
    words += fmt::format("{}{}", words.empty() ? "" : ": ", event.because);
  }
  return Printable(words + DryRunText(event));
}

std::string EventLine(const Event& event) {
  return fmt::format("{}  #{} {}{}{}  {}\n", WallToText(event.wall_us), event.id, event.kind,
                     event.target.empty() ? "" : " ", event.target, EventWords(event));
}

std::string ExplanationText(const Explanation& explanation) {
  const Event& event = explanation.event;
  std::string text =
      fmt::format("#{} at {}: {}\n", event.id, WallToText(event.wall_us), WhoText(event));
  if (!event.target.empty()) text += fmt::format("  about    {}\n", event.target);
  if (!event.action.empty()) {
    text += fmt::format("  action   {}{}\n", event.action, DryRunText(event));
  }
  if (const std::string change = ChangeText(event); !change.empty()) {
    text += fmt::format("  change   {}\n", change);
  }
  if (!event.verdict.empty()) text += fmt::format("  verdict  {}\n", event.verdict);
  if (!event.because.empty()) text += fmt::format("  because  {}\n", Printable(event.because));
  if (!event.evidence.empty()) text += "\n" + EvidenceText(event);
  if (explanation.cause.has_value()) {
    text += "\n  WHAT LED TO IT\n" + ShortLine(*explanation.cause);
  } else if (event.cause_id != 0) {
    text += fmt::format("\n  WHAT LED TO IT\n  #{}, which is not kept any more\n", event.cause_id);
  }
  const bool acted = event.kind == "decision" || event.kind == "action";
  if (explanation.effects.empty() && !acted) return text;
  text += "\n  WHAT CAME OF IT\n";
  bool judged = false;
  for (const Event& effect : explanation.effects) {
    text += ShortLine(effect);
    if (effect.kind != "outcome") continue;
    judged = true;
    if (!effect.evidence.empty()) text += EvidenceText(effect);
    text += fmt::format("  {}\n", VerdictText(effect.verdict));
  }
  if (acted && !judged) {
    text += event.dry_run ? "  nothing: it was not done\n" : "  its outcome is not known yet\n";
  }
  return text;
}

}  // namespace muster::steer
