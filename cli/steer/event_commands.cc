#include "cli/steer/event_commands.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "cli/state/job_source.h"
#include "cli/state/scaler_link.h"
#include "cli/steer/event_text.h"
#include "cli/steer/scaler_call.h"
#include "cli/steer/timeline.h"
#include "proto/fields/json.h"
#include "scaler/decision/log/event_log.h"
#include "scaler/model/model_json.h"

namespace muster::steer {
namespace {

using scaler::rest::EventList;
using scaler::rest::RestClient;

constexpr std::chrono::milliseconds kPollInterval{300};
constexpr uint32_t kEventsPerPage = 1'000;
/// A job's scaler keeps fewer events than this.
constexpr uint32_t kEventsKept = 1'000'000;

/// Reads the scaler's events, and later their continuation.
class EventsOfScaler {
 public:
  EventsOfScaler(const QueryOptions& query, uint64_t after) : query_(query), after_(after) {}

  /// Adds new events, from the scaler or from the file that it has left. If neither can be read, it
  /// adds nothing, and says so once.
  void AddNewTo(Timeline* timeline) {
    // If the user names a master by its address, the state directory may be somewhere else.
    if (!query_.master.empty()) return;
    const absl::StatusOr<StateDirectory> state = FindStateDirectory(query_.target);
    if (!state.ok()) return;
    const bool serves = state->ReadRestAddress().ok();
    const absl::Status status = serves ? Ask(*state, timeline) : Read(*state, timeline);
    if (!status.ok() && !told_) {
      PrintNote(fmt::format("events of the scaler are missing here: {}", Message(status)));
    }
    told_ = !status.ok();
  }

 private:
  absl::Status Ask(const StateDirectory& state, Timeline* timeline) {
    MUSTER_ASSIGN_OR_RETURN(const RestClient client, FindScaler(state));
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(const EventList page, client.Events(after_, kEventsPerPage));
      if (page.events.empty()) return absl::OkStatus();
      Take(page, timeline);
    }
  }
  absl::Status Read(const StateDirectory& state, Timeline* timeline) {
    const absl::StatusOr<EventList> all = scaler::ReadEvents(state.scaler(), after_, kEventsKept);
    if (absl::IsNotFound(all.status())) return absl::OkStatus();  // the scaler has no events yet
    if (all.ok()) Take(*all, timeline);
    return all.status();
  }
  void Take(const EventList& list, Timeline* timeline) {
    for (const scaler::rest::Event& event : list.events) {
      timeline->Add(event);
      after_ = event.id;
    }
  }

  const QueryOptions& query_;
  uint64_t after_;
  bool told_ = false;
};

/// Reads the master's events, and later their continuation, over restarts of the master.
class EventsOfMaster {
 public:
  static absl::StatusOr<EventsOfMaster> Open(const QueryOptions& query) {
    MUSTER_ASSIGN_OR_RETURN(JobSource source, FindJobSource(query));
    return EventsOfMaster(query, std::move(source));
  }

  /// Adds new events. Unavailable or DeadlineExceeded while the master is away.
  absl::Status AddNewTo(Timeline* timeline) {
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(const MasterEvents page, source_.client->ListEvents(request_));
      if (page.events.empty()) return absl::OkStatus();
      for (const MasterEvent& event : page.events) {
        request_.set_after(event.sequence);
        timeline->Add(event);
      }
    }
  }

  bool live() const { return source_.live; }
  /// Finds the master again. False if the run is over and has left no state. Otherwise, the next
  /// call gets an answer, or finds the master away.
  bool FindAgain() {
    const absl::Status away = ConnectToMaster(query_).status();
    if (away.ok()) return true;
    absl::StatusOr<JobSource> stored = OpenStoredSource(query_, away);
    if (stored.ok()) source_ = *std::move(stored);
    return stored.ok();
  }

 private:
  EventsOfMaster(const QueryOptions& query, JobSource source)
      : query_(query), source_(std::move(source)) {}

  const QueryOptions& query_;
  JobSource source_;
  v1::ListEventsRequest request_;
};

void PrintEntries(const std::vector<TimelineEntry>& entries, size_t first, OutputFormat output) {
  for (size_t i = first; i < entries.size(); ++i) {
    PrintData(output == OutputFormat::kText ? EntryText(entries[i])
                                            : scaler::rest::Dump(EntryToJson(entries[i])) + "\n");
  }
}

bool IsNarrow(const Timeline::Filter& filter) {
  return filter.after_id > 0 || !filter.kinds.empty() || !filter.node.empty();
}

}  // namespace

int EventsCommand(const EventsOptions& options) {
  Timeline::Filter filter{.after_id = 0,
                          .kinds = options.kinds,
                          .node = options.node,
                          .pair_exits = options.query.output == OutputFormat::kText};
  if (!options.after.empty()) {
    const absl::StatusOr<uint64_t> after = ParseEventId(options.after);
    if (!after.ok()) return PrintError(Annotate(after.status(), "--after"));
    filter.after_id = *after;
  }
  absl::StatusOr<EventsOfMaster> master = EventsOfMaster::Open(options.query);
  if (!master.ok()) return PrintError(master.status());
  // It also requests the event itself, because its time shows which of the master's events came
  // later.
  EventsOfScaler scaler(options.query, filter.after_id == 0 ? 0 : filter.after_id - 1);
  Timeline timeline(filter);
  for (bool first = true;; first = false) {
    const bool live = master->live();
    scaler.AddNewTo(&timeline);
    const absl::Status status = master->AddNewTo(&timeline);
    // With --follow, it waits while the master is restarted, and ends with the run.
    const bool waiting = options.follow && IsUnreachable(status);
    if (!status.ok() && !waiting) return PrintError(status);
    const std::vector<TimelineEntry> entries = timeline.Take(options.follow && live && !waiting);
    const size_t shown = first && options.last > 0 ? options.last : entries.size();
    PrintEntries(entries, entries.size() - std::min(shown, entries.size()), options.query.output);
    if (first && entries.empty() && !options.follow && IsNarrow(filter)) {
      PrintNote("no event is of that node, of these kinds and after that event");
    }
    if (!options.follow || !live) return kExitSucceeded;
    // The run is over. Its last events are in the state directory.
    if (waiting && !master->FindAgain()) return kExitSucceeded;
    SleepFor(kPollInterval);
  }
}

int ExplainCommand(const ExplainOptions& options) {
  const absl::StatusOr<uint64_t> id = ParseEventId(options.event);
  if (!id.ok()) return PrintError(id.status());
  const absl::StatusOr<StateDirectory> state = FindStateDirectory(options.query.target);
  if (!state.ok()) return PrintError(state.status());
  const absl::StatusOr<RestClient> client = FindScaler(options.query.target);
  const bool stored = !client.ok() && scaler::ReadEvents(state->scaler(), 0, 1).ok();
  if (!client.ok() && !stored) return PrintError(client.status());
  if (stored) PrintNote("no scaler answers; this is what its file of events holds");
  const absl::StatusOr<scaler::rest::Explanation> explanation =
      stored ? scaler::ReadExplanation(state->scaler(), *id) : client->Explain(*id);
  if (!explanation.ok()) return PrintRefusal(explanation.status());
  PrintData(options.query.output == OutputFormat::kJson ? JsonText(ToJson(*explanation), 2) + "\n"
                                                        : ExplanationText(*explanation));
  return kExitSucceeded;
}

}  // namespace muster::steer
