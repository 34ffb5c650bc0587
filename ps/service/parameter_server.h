#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "ps/core/control_state.h"
#include "ps/core/lane_reports.h"
#include "ps/core/master_absence.h"
#include "ps/service/lane_server.h"
#include "ps/service/listen_place.h"
#include "ps/service/master_client.h"

namespace muster::ps {

/// A parameter server: lanes that serve workers, background threads for files, and one loop that
/// talks to the master. Make it, Run() it, and end it with RequestStop() from any thread.
class ParameterServer {
 public:
  struct Options {
    std::string name;              // "ps-0"
    std::string socket_directory;  // of the lanes' UNIX sockets, "<name>.<lane>.sock"
    /// Finds where TCP listens; asked again while it is kUnavailable. Empty: on loopback.
    std::function<absl::StatusOr<ListenPlace>()> find_place;
    uint32_t lanes = 1;
    /// A random number that identifies this process among all processes of its name.
    uint64_t nonce = 0;
    StartNumber start;  // 0: not known
    LaneLimits limits;
    /// As in LaneOptions.
    net::TlsContextSource tls;
    /// The pause before a snapshot that could not be written or read is retried.
    std::chrono::milliseconds retry_pause{1000};
    /// See LaneReports::Options.
    std::chrono::milliseconds lane_patience{100};
    std::chrono::seconds lane_silence_max{30};
    /// The pause before an export that could not be read is retried.
    std::chrono::milliseconds warm_start_pause{2000};
    /// How long a server that was told to leave waits for its snapshots.
    std::chrono::milliseconds leave_timeout{8000};
    MasterAbsence::Options absence;
    /// Called after serving has ended and before threads are joined, because one of them may hang.
    std::function<void()> on_end;
  };
  /// Makes the storage that the master's registration names.
  using StorageFactory =
      std::function<absl::StatusOr<std::unique_ptr<Storage>>(const RegisterServerReply&)>;

  /// `clock` must outlive the server.
  ParameterServer(Options options, std::unique_ptr<MasterClient> master, StorageFactory storage,
                  const Clock* clock);
  ~ParameterServer();
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;

  /// Listens, registers and serves. Returns OK after RequestStop(). Otherwise it returns why the
  /// server cannot continue: no socket, refused by the master, declared dead. Call it once. While
  /// the master is away, it continues to serve workers, for as long as Options::absence says. After
  /// that, it returns OK if the master had said that the job is over, and else kUnavailable.
  absl::Status Run();
  /// Makes Run() return soon. Thread-safe, idempotent.
  void RequestStop();
  /// Makes Run() return when every partition has a snapshot, so that little work must be repeated.
  /// Workers are served until then. It returns soon if the master does not answer or if the job is
  /// over, and after leave_timeout at the latest. Thread-safe, idempotent. A lane that hangs does
  /// not delay this function or RequestStop until threads are joined.
  void RequestLeave();

 private:
  /// The rows that a table starts from. They are read when a partition needs them.
  struct WarmStart {
    using Result = absl::StatusOr<std::shared_ptr<const WarmStartSource>>;
    TableSpec spec;
    bool loading = false;
    bool over = false;  // the lanes have it, or it will never work
    TimePoint not_before{};
    std::string error;             // of the last attempt
    std::optional<Result> result;  // guarded by mutex_: set by the loader
  };

  absl::StatusOr<ListenPlace> FindPlace();
  absl::StatusOr<std::vector<std::vector<std::string>>> Listen();
  absl::StatusOr<RegisterServerReply> Register(
      const std::vector<std::vector<std::string>>& addresses);
  absl::Status StartLanes(const RegisterServerReply& registered);
  absl::Status Serve(const RegisterServerReply& registered);
  /// True if the server was told to leave. `state` is then told, too.
  bool Leaving(ControlState* state);
  /// Returns the lanes' newest reports. The report of a busy lane may be of an earlier exchange.
  std::vector<LaneReport> CollectReports(uint64_t sequence);
  bool ToldToEnd();
  void AddTable(const TableSpec& table);
  /// Starts the reads that the lanes need, and gives them the results.
  void AdvanceWarmStarts(const std::vector<LaneReport>& reports);
  void BeginWarmStart(const std::shared_ptr<WarmStart>& table);
  void EndWarmStart(const WarmStart::Result& result, WarmStart* table);
  ControlState::Errors Errors() const;
  struct Collector;
  void StopThreads();

  /// Waits until `timeout` has passed. With `kNews`, it also ends when there is something to
  /// report, or when the server is told to leave. Returns false if the server must stop.
  enum class Until { kTimeout, kNews };
  bool Wait(std::chrono::nanoseconds timeout, Until until);
  void Wake();
  /// Returns the result of Run if the master, which has just not answered, is away for too long.
  std::optional<absl::Status> EndIfAway(const MasterAbsence& absence, const absl::Status& status);

  const Options options_;
  const std::unique_ptr<MasterClient> master_;
  const StorageFactory make_storage_;
  const Clock* const clock_;

  // Only the thread in Run() uses these.
  Rng rng_;
  uint32_t partition_count_ = 0;
  std::shared_ptr<Collector> collector_;  // shared with the lanes
  std::map<TableId, std::shared_ptr<WarmStart>> warm_starts_;
  std::string fatal_error_;
  std::optional<TimePoint> away_logged_;
  std::optional<TimePoint> leave_by_;  // none: it was not told to leave

  Mutex mutex_;
  CondVar changed_;
  bool stop_ MUSTER_GUARDED_BY(mutex_) = false;
  bool leave_ MUSTER_GUARDED_BY(mutex_) = false;
  bool registered_ MUSTER_GUARDED_BY(mutex_) = false;
  bool news_ MUSTER_GUARDED_BY(mutex_) = false;

  // Stopped in this order by StopThreads(): queues post to lanes, lanes use the storage.
  std::unique_ptr<Storage> storage_;
  ImageSlots images_{2};
  LaneContext context_;
  std::vector<std::unique_ptr<LaneServer>> lanes_;
  WorkQueue restorer_;
  WorkQueue loader_;
  WorkQueue writer_;
};

}  // namespace muster::ps
