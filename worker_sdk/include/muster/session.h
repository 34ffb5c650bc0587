#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "muster/export.h"
#include "muster/minibatch.h"
#include "muster/status.h"
#include "muster/table.h"

namespace muster {

namespace internal {
class MinibatchLoop;
class SessionImpl;
class ShardImpl;
}  // namespace internal

class Group;
struct CollectiveOptions;

/// How to reach the job. FromEnvironment reads it from the environment variables on the right;
/// `muster run` sets them. A value; thread-compatible.
struct MUSTER_EXPORT SessionOptions {
  std::string master_address{};  // "127.0.0.1:7070"            MUSTER_MASTER
  std::string worker_name{};     // "worker-0"                  MUSTER_NODE
  std::string slot_file{};       // progress for the supervisor MUSTER_SLOT_FILE; empty: none
  uint64_t connect_timeout_ms = 30'000;  // also the limit for registering a table
  /// Counts this worker's starts in the run, from 1; 0 if it is not known. MUSTER_START
  uint64_t start = 0;
  /// The id in the job's journal. The session then ignores the masters of other jobs. If it is
  /// empty, the session joins the job of the first master that answers. MUSTER_JOB_ID
  std::string job_id{};
  /// Files in PEM, for a job whose connections are encrypted: the certificate of the job's
  /// authority, this worker's certificate, and its key. Give all of them, or none for plain text.
  /// Each new connection uses the files as they are then; connections that exist stay.
  /// `muster run` gives them if spec.security asks for TLS.
  std::string ca_file{};           // MUSTER_CA_FILE
  std::string certificate_file{};  // MUSTER_CERTIFICATE_FILE
  std::string key_file{};          // MUSTER_KEY_FILE
  /// "THERE=HERE": files that the master names below the folder THERE lie below HERE on this
  /// machine. Empty: under the same paths. MUSTER_DATA_ROOT
  std::string data_root{};
  /// So long the session goes on while the master does not answer; then it fails with
  /// Code::kUnavailable. 0: for ever. MUSTER_MASTER_AWAY_MAX, in seconds
  uint64_t master_away_max_ms = 0;
  /// Asked at least every 50 ms while a call waits, on the thread that waits, for example whether a
  /// signal has come. Connect and the registration of tables ask only between their calls to the
  /// master, which take 2 s at most; destructors do not ask. If it returns true, the session fails
  /// with Code::kInterrupted, so the call returns soon, and the shards that the session holds go
  /// back without counting a failure. It may call Session::Leave and Session::status. It must not
  /// throw. Empty: nobody is asked.
  std::function<bool()> interrupted{};
  static SessionOptions FromEnvironment();
};

/// The minibatches of a shard; a loop can run through them once. If the loop did not call Commit,
/// the step to the next minibatch calls it. A second begin() is an empty range. Not thread-safe:
/// only the shard's thread may use it.
class MUSTER_EXPORT MinibatchRange {
 public:
  /// Part of its range. Not thread-safe: only the shard's thread may use it.
  class MUSTER_EXPORT Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Minibatch;
    using difference_type = std::ptrdiff_t;
    using pointer = Minibatch*;
    using reference = Minibatch&;
    explicit Iterator(internal::MinibatchLoop* loop) : loop_(loop) {}
    Minibatch& operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return loop_ == other.loop_; }

   private:
    internal::MinibatchLoop* loop_;
  };
  MinibatchRange(internal::MinibatchLoop* loop, Prepare prepare)
      : loop_(loop), prepare_(std::move(prepare)) {}
  Iterator begin();
  Iterator end() { return Iterator(nullptr); }

 private:
  internal::MinibatchLoop* loop_;
  Prepare prepare_;
};

/// A leased shard. Not thread-safe: it stays with the thread that runs its loop, and must not
/// outlive its session. If you leave the loop early without Fail, the shard is handed back. If that
/// happens three times in a row and no run gets further than an earlier one, it counts as one
/// failure, unless the worker leaves.
class MUSTER_EXPORT Shard {
 public:
  /// The minibatches of the shard, for a loop. The loop ends early if the lease is lost. After a
  /// server was restored, a shard may come again; it then has only the minibatches of which the
  /// server lost something.
  MinibatchRange Minibatches(Prepare prepare = nullptr);
  /// Reports that the trainer failed on this shard. The loop ends, and the shard is tried again,
  /// here or on another worker. After spec.leases.failuresMax failures, the shard is FAILED. Its
  /// metrics and rejected records of this run do not count. Idempotent.
  void Fail(std::string_view reason);
  /// "dataset/epoch/index", for logs.
  std::string id() const;
  /// True if its dataset has mode `evaluate`; see Minibatch::evaluate.
  bool evaluate() const;
  /// The first line of the source file, without its line end, if the dataset has a header;
  /// otherwise empty. Valid as long as the shard.
  std::string_view header() const;

  explicit Shard(std::unique_ptr<internal::ShardImpl> impl);
  Shard(Shard&&) noexcept;
  Shard& operator=(Shard&&) noexcept;
  ~Shard();

 private:
  std::unique_ptr<internal::ShardImpl> impl_;
};

/// A worker's connection to its job. Thread-safe except for moving and destruction: several threads
/// may each run their own shards. A process may have only one session, because the slot file has
/// room for one.
///
/// If the process crashes (for example by SIGSEGV, or by an exit code other than 0), the crash
/// counts as a failure of the shard whose loop was running. If several loops were running, the
/// shard is not known, and the crash counts for no shard. To find the shard, a process that `muster
/// run` has restarted first runs one loop alone, until that loop has completed a shard, for at most
/// a minute. The stack of the thread that crashed is printed on stderr, unless the process has a
/// handler of its own for the signal when it connects.
///
/// A child that is forked from a connected process has no session: it has none of the session's
/// threads. No call in it waits or touches a connection. Each says once on stderr what to do, and
/// fails like a session that has failed: status() and Connect are kFailedPrecondition. Start
/// processes that need a session with exec, and let them connect themselves.
class MUSTER_EXPORT Session {
 public:
  /// Waits for the master for at most connect_timeout_ms, with a line on stderr every 2 s, and
  /// starts the background threads. kInvalidArgument: an option is missing or wrong. kUnavailable:
  /// no master answered in time. kFailedPrecondition: the master has another version, a certificate
  /// file cannot be used, or this process is the forked child of one that has connected. kNotFound:
  /// such a file is missing.
  static Result<Session> Connect(SessionOptions options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  /// Hands back the shards that the session holds and stops the threads. Waits at most 5 s.
  ~Session();

  /// Registers a table, and waits for the master. Every worker must give the same definition. The
  /// same definition again returns the same table. If definitions differ, if an option is invalid,
  /// or if no master answers in time, the session fails: status() says why, NextShard() returns
  /// nullopt, and Finish() returns 1. You may still use the handle; its calls do nothing.
  Table SparseTable(SparseTableOptions options);
  DenseTensor DenseTable(DenseTableOptions options);

  /// How many records each dataset with `records: N` in the job file has, by its name.
  std::map<std::string, uint64_t> numbered_datasets() const;

  /// The next shard. Blocks while there is none, because a replay may bring more. Returns nullopt
  /// if the job is over or drains, if this worker leaves, or if the session failed.
  ///
  /// If a source file is missing, or if it is not the file that the job has indexed, the job fails.
  /// While this process is out of file descriptors, memory or disk space, it hands shards back
  /// without counting a failure, and tries again after a pause of 0.1 to 5 s, with a line on
  /// stderr. The session keeps up to 64 source files open.
  std::optional<Shard> NextShard();

  /// This process's part in the group of a job with `spec.group` (muster/group.h), where NextShard
  /// is not for use. The process may have one such object at a time; when it is destroyed, another
  /// one may join the group. kFailedPrecondition: the job has no group, or the process has the
  /// object already.
  Result<muster::Group> Group();
  /// The same, with another library than the own one for the sums. Errors also: kNotFound: the
  /// library cannot be loaded; kFailedPrecondition: it has no such GPU; kUnimplemented: it is too
  /// old; kInvalidArgument: an option is wrong.
  Result<muster::Group> Group(const CollectiveOptions& options);

  /// Ends this worker's part in the job, for example after SIGTERM (the SDK handles no signals).
  /// From now on, NextShard returns nullopt, and waiting shards are handed back. Loops may finish
  /// their shards, or you may leave them. Finish() returns 0. Idempotent. Do not call it from a
  /// signal handler.
  void Leave();

  /// Why the session failed; OK if it did not.
  Status status() const;
  /// Waits until the master has answered all reports, and returns the exit code for main(). The
  /// code is 0 if the job is over for this worker, or drains. Otherwise it is 1, with a message on
  /// stderr: the session failed, or the trainer stopped to ask for shards before NextShard returned
  /// nullopt, without Leave.
  ///
  /// Call it last, when every loop has ended. If a shard is still in a loop of any thread, it is
  /// handed back at once without counting a failure, and the loop ends as after a lost lease. Later
  /// calls return the same code as the first. Thread-safe.
  int Finish();

 private:
  explicit Session(std::unique_ptr<internal::SessionImpl> impl);
  std::unique_ptr<internal::SessionImpl> impl_;
};

}  // namespace muster
