#include "cli/simulate/simulate_output.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "cli/show/fit.h"
#include "cli/show/json_output.h"
#include "cli/show/progress.h"
#include "cli/steer/event_text.h"
#include "scaler/model/model_json.h"

namespace muster::simulate {
namespace {

using scaler::Simulation;
using scaler::rest::Event;

std::string TimeText(uint64_t wall_us, TimeShown times) {
  if (times == TimeShown::kWall) return WallToText(wall_us);
  const uint64_t s = wall_us / 1'000'000;
  return fmt::format("+{:02}:{:02}:{:02}", s / 3'600, s / 60 % 60, s % 60);
}

/// "memory 400 MiB, memory growth 1 MiB/s over 60 s".
std::string FiguresText(const Event& event) {
  std::string text;
  for (const scaler::rest::Evidence& figure : event.evidence) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", figure.name,
                        steer::FigureText(figure.value, figure.unit));
    if (figure.window_s > 0) text += fmt::format(" over {:g} s", figure.window_s);
  }
  return text;
}

std::string PoliciesText(const Simulation& simulation) {
  std::vector<std::vector<std::string>> rows = {{"POLICY", "DECISIONS", "HELD BACK", ""}};
  for (const scaler::rest::Policy& policy : simulation.policies) {
    rows.push_back({policy.name, std::to_string(policy.decisions), std::to_string(policy.refused),
                    policy.paused ? "paused" : ""});
  }
  return FormatTable(rows);
}

}  // namespace

std::string SimulationText(const Simulation& simulation, TimeShown times) {
  std::string text;
  for (const Event& event : simulation.events) {
    text +=
        fmt::format("{}  #{} {}{}{}  {}\n", TimeText(event.wall_us, times), event.id, event.kind,
                    event.target.empty() ? "" : " ", event.target, steer::EventWords(event));
    if (event.kind == "decision" && !event.evidence.empty()) {
      text += fmt::format("    {}\n", FiguresText(event));
    }
  }
  if (simulation.events_left_out > 0) {
    text += fmt::format("... and {} more events\n", simulation.events_left_out);
  }
  if (simulation.events.empty()) text += "Nothing would have been decided.\n";
  text += "\n" + PoliciesText(simulation) + "\n";
  const double seconds =
      static_cast<double>(simulation.end_wall_us - simulation.begin_wall_us) / 1e6;
  text += fmt::format("{} to {}: {} trained", TimeText(simulation.begin_wall_us, times),
                      TimeText(simulation.end_wall_us, times),
                      CountText(simulation.records_trained, "record"));
  if (seconds > 0) {
    text += ", " + RateText(static_cast<double>(simulation.records_trained) / seconds);
  }
  if (times == TimeShown::kWall) {
    return text + fmt::format(", {} runs, {} views\n", simulation.runs, simulation.steps);
  }
  text += fmt::format(", {} kills for memory\n", simulation.kills_for_memory);
  if (!simulation.failure.empty()) text += "The job was stopped: " + simulation.failure + "\n";
  return text;
}

nlohmann::json SimulationToJson(const Simulation& simulation, TimeShown times) {
  nlohmann::json json =
      ToJson(scaler::rest::EventList{.events = simulation.events, .next_after = 0});
  json.erase("next_after");
  json["events_left_out"] = simulation.events_left_out;
  json["policies"] = ToJson(scaler::rest::PolicyList{.policies = simulation.policies})["policies"];
  json["source"] = times == TimeShown::kWall ? "history" : "described";
  json["begin_wall_us"] = simulation.begin_wall_us;
  json["end_wall_us"] = simulation.end_wall_us;
  json["views"] = simulation.steps;
  json["runs"] = simulation.runs;
  json["records_trained"] = simulation.records_trained;
  if (times == TimeShown::kSinceBeginning) {
    json["kills_for_memory"] = simulation.kills_for_memory;
    json["stopped_because"] = simulation.failure;
  }
  return json;
}

}  // namespace muster::simulate
