#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/messages/job_identity.h"
#include "security/identity.h"

namespace muster {

/// Creates the folder and tests that it can be written. The error begins with the `field` of the
/// job file that names it.
absl::Status MakeWritable(const std::string& folder, std::string_view field);

/// OK if MakeWritable would probably succeed. It creates nothing: it checks that the folder, or the
/// nearest existing one above it, is a folder that this user may write.
absl::Status CouldWrite(const std::string& folder, std::string_view field);

/// Tells other programs where a running job is: `<state>/run/endpoint.json`.
struct Endpoint {
  std::string master;  // "127.0.0.1:20123"
  int64_t pid = 0;     // of `muster run`
  std::string run_id;
  JobIdentity job;  // the parts that are known
  /// The directory of the job's certificates. If empty, connections are plain text.
  std::string certificates = "";
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// Tells other programs where the REST interface of a running job is: `<state>/run/rest.json`.
struct RestAddress {
  uint16_t port = 0;
  int64_t pid = 0;                 // of the scaler that serves it
  std::string host = "127.0.0.1";  // for programs on this machine
  std::string advertise = "127.0.0.1";
  /// The same as in Endpoint.
  std::string certificates = "";
  friend bool operator==(const RestAddress&, const RestAddress&) = default;
};

/// The files in a job's state directory that belong to the muster executable. A value.
class StateDirectory {
 public:
  explicit StateDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string run() const { return path_ + "/run"; }
  std::string logs() const { return path_ + "/logs"; }
  std::string journal() const { return path_ + "/journal"; }
  std::string job_copy() const { return path_ + "/job.yaml"; }
  std::string summary() const { return path_ + "/summary.json"; }
  std::string lock() const { return run() + "/lock"; }
  /// Sockets of the supervising processes of nodes.
  std::string nodes() const { return run() + "/nodes"; }
  /// What a scaler leaves for the next one.
  std::string scaler() const { return path_ + "/scaler"; }
  /// The job's token. Callers of master and scaler must show it (base/token_file.h).
  std::string token() const { return scaler() + "/token"; }
  /// A token with which a machine can join as `role` (kWorker or kServer), and do nothing else.
  std::string JoinTokenOf(Role role) const {
    return scaler() + "/join-" + std::string(RoleWord(role));
  }
  /// The certificates that `muster run` makes (security/certificate_authority.h).
  std::string certificates() const { return path_ + "/tls"; }
  std::string LogOf(const std::string& node) const { return logs() + "/" + node + ".log"; }
  std::string SlotOf(const std::string& node) const { return run() + "/" + node + ".slot"; }

  /// Creates the folders and tests that they can be written. Only their owner may use them (mode
  /// 0700). A folder that was there before and holds other files keeps its mode. The error says
  /// which folder cannot be written, and why.
  absl::Status Create() const;

  /// Makes the job's token if it is missing, and the tokens of machines that join.
  absl::Status MakeToken() const;

  absl::Status WriteEndpoint(const Endpoint& endpoint) const;
  void RemoveEndpoint() const;
  /// NotFound if no job runs here, or if the one that ran was killed. It says which, and what to
  /// do.
  absl::StatusOr<Endpoint> ReadEndpoint() const;

  /// A scaler writes this when it begins to serve, and removes it when it ends.
  absl::Status WriteRestAddress(const RestAddress& address) const;
  void RemoveRestAddress() const;
  /// NotFound if no scaler serves: there is no file, or the scaler that wrote it is dead. In that
  /// case, another program may have its port.
  absl::StatusOr<RestAddress> ReadRestAddress() const;

 private:
  bool HoldsNothingElse() const;
  std::string endpoint() const { return run() + "/endpoint.json"; }
  std::string rest_address() const { return run() + "/rest.json"; }
  std::string path_;
};

/// A lock that is held while any process of a run uses the state directory: `muster run`, and the
/// supervising processes, which inherit fd(). The kernel releases it however they die.
class StateLock {
 public:
  /// Waits while the processes of a killed run end. AlreadyExists, with the holder's pid, if
  /// another run holds it. Requires: Create() succeeded.
  static absl::StatusOr<StateLock> Acquire(const StateDirectory& directory);
  /// For a directory that several machines share. A lost machine may have the lock for ever, or
  /// locks may not work there at all. After `patience`, it says so through `tell` and continues
  /// without the lock. Something else must then prevent that two runs write (the generation of a
  /// journal).
  static absl::StatusOr<StateLock> AcquireOrPass(const StateDirectory& directory,
                                                 std::chrono::milliseconds patience,
                                                 const std::function<void(std::string_view)>& tell);
  /// AlreadyExists, as above, if a live run holds it. It takes nothing.
  static absl::Status CheckFree(const StateDirectory& directory);
  StateLock(StateLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  StateLock& operator=(StateLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~StateLock();
  int fd() const { return fd_; }

 private:
  explicit StateLock(int fd) : fd_(fd) {}
  static absl::StatusOr<StateLock> Open(const StateDirectory& directory);
  /// Writes our pid into the file, for the messages of other processes.
  absl::Status Sign(const StateDirectory& directory) const;
  int fd_ = -1;
};

}  // namespace muster
