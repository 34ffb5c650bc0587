#include "cli/steer/top_command.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "cli/state/scaler_link.h"
#include "cli/steer/scaler_call.h"
#include "cli/steer/screen.h"
#include "cli/steer/top_view.h"
#include "scaler/model/model_json.h"

namespace muster::steer {
namespace {

/// Short, because keys are not read while an answer is awaited.
constexpr std::chrono::milliseconds kAnswerTime{1'500};
constexpr uint64_t kEventsShown = 20;

absl::StatusOr<TopReading> Read(const StateDirectory& state, const Clock& clock) {
  MUSTER_ASSIGN_OR_RETURN(const scaler::rest::RestClient client, FindScaler(state, kAnswerTime));
  TopReading reading;
  MUSTER_ASSIGN_OR_RETURN(reading.job, client.GetJob());
  MUSTER_ASSIGN_OR_RETURN(scaler::rest::NodeList nodes, client.Nodes());
  const uint64_t newest = reading.job.last_event_id;
  MUSTER_ASSIGN_OR_RETURN(
      scaler::rest::EventList events,
      client.Events(newest > kEventsShown ? newest - kEventsShown : 0, kEventsShown));
  reading.nodes = std::move(nodes.nodes);
  reading.events = std::move(events.events);
  reading.at = clock.Now();
  return reading;
}

void PrintPlain(const TopReading& reading, const TopView& view, const Clock& clock,
                OutputFormat output) {
  if (output == OutputFormat::kJson) {
    nlohmann::json json = ToJson(scaler::rest::Status{reading.job, reading.nodes});
    json["events"] = JsonFields::Value(reading.events);
    return PrintData(scaler::rest::Dump(json) + "\n");
  }
  std::string text;
  for (const TopLine& line : view.Lines(clock.Now(), clock.Wall(), {})) text += line.text + "\n";
  PrintData(text + "\n");
}

/// Prints blocks, or documents of one line, one after the other.
int RunPlain(const TopOptions& options, const StateDirectory& state, TopReading reading,
             const Clock& clock) {
  const auto interval = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.interval_s));
  TopView view;
  view.Add(reading);
  // With `once`, it prints after the second reading, because rates need the time between two.
  if (!options.once) PrintPlain(reading, view, clock, options.query.output);
  while (!IsTerminal(reading.job.state) || options.once) {
    SleepFor(interval);
    absl::StatusOr<TopReading> next = Read(state, clock);
    if (absl::IsNotFound(next.status())) break;
    if (!next.ok()) {
      if (options.once) return PrintRefusal(next.status());
      PrintNote(Message(next.status()));
      continue;
    }
    reading = *std::move(next);
    view.Add(reading);
    PrintPlain(reading, view, clock, options.query.output);
    if (options.once) break;
  }
  return kExitSucceeded;
}

int RunOnScreen(const TopOptions& options, const StateDirectory& state, TopReading reading,
                const Clock& clock, std::unique_ptr<Screen> screen) {
  const auto interval = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.interval_s));
  TopView view;
  bool over = IsTerminal(reading.job.state);
  TimePoint next_at = clock.Now() + interval;
  view.Add(std::move(reading));
  while (true) {
    screen->Draw(view.Lines(clock.Now(), clock.Wall(), screen->size()));
    if (over) break;
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(next_at - clock.Now());
    if (rest.count() > 0) {
      if (screen->AwaitInput(rest) == Screen::Input::kQuit) return kExitSucceeded;
      if (clock.Now() < next_at) continue;
    }
    next_at = clock.Now() + interval;
    absl::StatusOr<TopReading> next = Read(state, clock);
    over = next.ok() ? IsTerminal(next->job.state) : absl::IsNotFound(next.status());
    if (next.ok()) {
      view.Add(*std::move(next));
    } else {
      view.SetAway(std::string(Message(next.status())));
    }
  }
  screen.reset();
  // The last screen stays visible.
  for (const TopLine& line : view.Lines(clock.Now(), clock.Wall(), {})) PrintData(line.text + "\n");
  PrintNote("the job is over; `muster status` shows how it ended");
  return kExitSucceeded;
}

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

int TopCommand(const TopOptions& options) {
  const absl::StatusOr<StateDirectory> state = FindStateDirectory(options.query.target);
  if (!state.ok()) return PrintError(state.status());
  const SystemClock clock;
  const absl::StatusOr<scaler::rest::RestClient> client = FindScaler(options.query.target);
  if (!client.ok()) return PrintError(client.status());
  absl::StatusOr<TopReading> first = Read(*state, clock);
  if (!first.ok()) return PrintRefusal(first.status());
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  const bool plain = options.once || dumb || options.query.output == OutputFormat::kJson ||
                     ::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1;
  if (plain) return RunPlain(options, *state, *std::move(first), clock);
  absl::StatusOr<std::unique_ptr<Screen>> screen =
      Screen::Open(STDIN_FILENO, STDOUT_FILENO, IsSet("NO_COLOR") ? Colour::kOff : Colour::kOn);
  if (!screen.ok()) return PrintError(screen.status());
  return RunOnScreen(options, *state, *std::move(first), clock, *std::move(screen));
}

}  // namespace muster::steer
