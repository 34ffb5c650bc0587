#include "cli/metrics/tensorboard_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "admin/admin_client.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/metrics/log_directory.h"
#include "cli/metrics/points.h"
#include "cli/run/run_checks.h"
#include "cli/show/output.h"
#include "proto/fields/json.h"
#include "scaler/history/history_reader.h"

namespace muster::metrics {
namespace {

constexpr std::chrono::seconds kLookEvery{1};
/// Rates of a running job are added this often. Epochs are added as soon as they are committed.
constexpr std::chrono::seconds kRatesEvery{60};

absl::StatusOr<std::vector<MasterEvent>> AllEvents(AdminClient* client) {
  std::vector<MasterEvent> all;
  v1::ListEventsRequest request;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(MasterEvents page, client->ListEvents(request));
    if (page.events.empty()) return all;
    request.set_after(page.events.back().sequence);
    std::ranges::move(page.events, std::back_inserter(all));
  }
}

/// The rates in the scaler's history.
std::vector<Point> RatesOf(const StateDirectory& state) {
  absl::StatusOr<scaler::HistoryReader> reader =
      scaler::HistoryReader::Open(state.scaler() + "/history");
  if (!reader.ok()) return {};
  RateSampler sampler;
  while (const scaler::JobView* view = reader->Next()) {
    const auto wall = std::chrono::duration_cast<WallTime>(view->now.time_since_epoch());
    sampler.Add(wall, view->records_trained, reader->begins_run());
  }
  return sampler.points();
}

/// Says to which job the files belong. A job that begins again has another id.
std::string WriterOf(const StateDirectory& state, const std::string& name) {
  const absl::StatusOr<Endpoint> endpoint = state.ReadEndpoint();
  const bool told = endpoint.ok() && !endpoint->job.id.empty();
  return fmt::format("muster {} {}", name, told ? endpoint->job.id : JobIdOf(state, ""));
}

void Print(const TensorboardOptions& options, uint64_t added) {
  if (options.query.output == OutputFormat::kJson) {
    PrintData(JsonText({{"log_directory", options.log_directory}, {"points_added", added}}) + "\n");
  } else {
    PrintData(fmt::format("{} added to {}\n", CountText(added, "point"), options.log_directory));
  }
}

class Exporter {
 public:
  Exporter(const TensorboardOptions& options, StateDirectory state)
      : options_(options), state_(std::move(state)) {}

  /// Looks at the job once, and writes new points. Returns true if the job does not run.
  absl::StatusOr<bool> Step() {
    MUSTER_ASSIGN_OR_RETURN(const JobSource source, FindJobSource(options_.query));
    MUSTER_ASSIGN_OR_RETURN(const JobStatus status, source.client->GetStatus());
    const bool over = !source.live || !options_.follow;
    if (over || IsDue(status)) MUSTER_RETURN_IF_ERROR(Write(source.client.get(), status, over));
    return over;
  }

 private:
  static size_t CountOf(const JobStatus& status) {
    size_t count = 0;
    for (const auto& [dataset, points] : EpochPoints(status, {}, {})) count += points.size();
    return count;
  }
  bool IsDue(const JobStatus& status) const {
    return !written_at_ || clock_.Now() - *written_at_ >= kRatesEvery ||
           CountOf(status) != written_count_;
  }

  absl::Status Write(AdminClient* client, const JobStatus& status, bool last) {
    if (!directory_) {
      MUSTER_ASSIGN_OR_RETURN(
          LogDirectory opened,
          LogDirectory::Open(options_.log_directory, WriterOf(state_, status.name)));
      directory_.emplace(std::move(opened));
    }
    MUSTER_ASSIGN_OR_RETURN(const std::vector<MasterEvent> events, AllEvents(client));
    PointsOfDatasets points = EpochPoints(status, events, clock_.Wall());
    const auto train =
        std::ranges::find(status.datasets, ToString(DatasetMode::kTrain), &DatasetStatus::mode);
    std::vector<Point> rates = RatesOf(state_);
    if (train != status.datasets.end() && !rates.empty()) {
      std::ranges::move(rates, std::back_inserter(points[train->name]));
    }
    MUSTER_ASSIGN_OR_RETURN(const uint64_t added, directory_->Add(points, clock_.Wall()));
    written_at_ = clock_.Now();
    written_count_ = CountOf(status);
    if (added > 0 || (last && !options_.follow)) Print(options_, added);
    return absl::OkStatus();
  }

  const TensorboardOptions& options_;
  const StateDirectory state_;
  const SystemClock clock_;
  std::optional<LogDirectory> directory_;
  std::optional<TimePoint> written_at_;
  size_t written_count_ = 0;
};

}  // namespace

int TensorboardCommand(const TensorboardOptions& options) {
  absl::StatusOr<StateDirectory> state = FindStateDirectory(options.query.target);
  if (!state.ok()) return PrintError(state.status());
  Exporter exporter(options, *std::move(state));
  while (true) {
    const absl::StatusOr<bool> over = exporter.Step();
    // A killed master is back soon, so this waits.
    const bool away = options.follow && IsUnreachable(over.status());
    if (!over.ok() && !away) return PrintError(over.status());
    if (over.ok() && *over) return kExitSucceeded;
    SleepFor(kLookEvery);
  }
}

}  // namespace muster::metrics
