#include "cli/state/state_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "base/token_file.h"
#include "proto/fields/json.h"
#include "security/join_token.h"

namespace muster {
namespace {

constexpr uint64_t kSmallFileMax = 1 << 20;
/// A new run waits this many times for the remains of a killed one: 10 s in all.
constexpr int kRemainsTries = 500;
constexpr std::chrono::milliseconds kRemainsPause{20};

absl::Status CheckWritable(const std::string& folder) {
  const std::string probe = fmt::format("{}/.muster-probe.{}", folder, ::getpid());
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return ErrnoStatus(errno, fmt::format("the folder {} is not writable", folder));
  }
  ::close(fd);
  ::unlink(probe.c_str());
  return absl::OkStatus();
}

/// Returns 0 if the file has no pid.
pid_t ReadPid(int fd) {
  char text[32] = {};
  if (::pread(fd, text, sizeof(text) - 1, 0) <= 0) return 0;
  return static_cast<pid_t>(std::atoi(text));
}

absl::Status InUse(const StateDirectory& directory, pid_t holder, std::string_view remark) {
  return absl::AlreadyExistsError(fmt::format(
      "the state directory {} is in use by another `muster run` (pid {}{}); wait for it, or end it "
      "with `muster drain --state-dir {}`",
      directory.path(), holder, remark, directory.path()));
}

/// True if the process `pid`, which held the lock, is gone and has left its files. The lock is
/// checked only if the process is not visible. In that case, it may run in another container or be
/// about to end.
bool WasKilled(const std::string& lock_path, pid_t pid) {
  if (pid <= 0 || ::kill(pid, 0) == 0 || errno != ESRCH) return false;
  const int fd = ::open(lock_path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  return ::flock(fd, LOCK_SH | LOCK_NB) == 0;
}

}  // namespace

absl::Status MakeWritable(const std::string& folder, std::string_view field) {
  const std::string advice =
      fmt::format("{} cannot be used; choose one that this user may write", field);
  MUSTER_RETURN_IF_ERROR_PREPEND(MakeDirectories(folder), advice);
  MUSTER_RETURN_IF_ERROR_PREPEND(CheckWritable(folder), advice);
  return absl::OkStatus();
}

absl::Status CouldWrite(const std::string& folder, std::string_view field) {
  std::filesystem::path path(folder);
  std::error_code error;
  while (!std::filesystem::exists(path, error) && path.has_parent_path() &&
         path != path.parent_path()) {
    path = path.parent_path();
  }
  const std::string advice =
      fmt::format("{} cannot be used; choose one that this user may write", field);
  if (!std::filesystem::is_directory(path, error)) {
    return Annotate(ErrnoStatus(ENOTDIR, fmt::format("cannot create the folder {} below {}", folder,
                                                     path.string())),
                    advice);
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    return Annotate(ErrnoStatus(errno, fmt::format("the folder {} is not writable", path.string())),
                    advice);
  }
  return absl::OkStatus();
}

bool StateDirectory::HoldsNothingElse() const {
  std::error_code error;
  const bool ours = std::filesystem::exists(lock(), error);
  return ours || std::filesystem::is_empty(path_, error);
}

absl::Status StateDirectory::Create() const {
  for (const std::string& folder : {path_, run(), logs()}) {
    const bool existed = ::access(folder.c_str(), F_OK) == 0;
    MUSTER_RETURN_IF_ERROR(MakeWritable(folder, "spec.stateDirectory"));
    // One of an earlier release, too. A folder that holds the user's own files stays as it is.
    if (!existed || folder != path_ || HoldsNothingElse()) MakePrivate(folder).IgnoreError();
  }
  return absl::OkStatus();
}

absl::Status StateDirectory::MakeToken() const {
  MUSTER_RETURN_IF_ERROR(MakeDirectories(scaler()));
  MUSTER_ASSIGN_OR_RETURN(const std::string token, LoadOrMakeToken(this->token()));
  for (const Role role : {Role::kWorker, Role::kServer}) {
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(JoinTokenOf(role), JoinToken(token, role) + "\n",
                                               FileAccess::kOwnerOnly));
  }
  return absl::OkStatus();
}

absl::Status StateDirectory::WriteEndpoint(const Endpoint& value) const {
  const nlohmann::json json = {{"master", value.master}, {"pid", value.pid},
                               {"run_id", value.run_id}, {"job", value.job.name},
                               {"job_id", value.job.id}, {"certificates", value.certificates}};
  MUSTER_FAILPOINT_OR_RETURN("endpoint.before-write");
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(endpoint(), JsonText(json) + "\n"));
  MUSTER_FAILPOINT_OR_RETURN("endpoint.after-write");
  return absl::OkStatus();
}

void StateDirectory::RemoveEndpoint() const {
  ::unlink(endpoint().c_str());
}

absl::StatusOr<Endpoint> StateDirectory::ReadEndpoint() const {
  absl::StatusOr<std::string> text = ReadFile(endpoint(), kSmallFileMax);
  if (!text.ok()) {
    return absl::NotFoundError(
        fmt::format("no job runs with the state directory {} (there is no {}). Start the job with "
                    "`muster run`, or name another state directory with --state-dir",
                    path_, endpoint()));
  }
  Endpoint value;
  // Reading a field throws if it is missing or has another type.
  try {
    const nlohmann::json json = nlohmann::json::parse(*text);
    value = {.master = json.at("master").get<std::string>(),
             .pid = json.value("pid", int64_t{0}),
             .run_id = json.value("run_id", std::string()),
             .job = {json.value("job_id", std::string()), json.value("job", std::string())},
             .certificates = json.value("certificates", std::string())};
  } catch (const nlohmann::json::exception&) {
    value.master.clear();
  }
  if (value.master.empty() || !CheckJobId("job_id", value.job.id).ok()) {
    return absl::DataLossError(
        fmt::format("{} is damaged; the next `muster run` writes it again", endpoint()));
  }
  if (WasKilled(lock(), static_cast<pid_t>(value.pid))) {
    return absl::NotFoundError(
        fmt::format("no job runs with the state directory {}: its last `muster run` (pid {}) was "
                    "killed. Run the job again; it continues where it stopped",
                    path_, value.pid));
  }
  return value;
}

absl::Status StateDirectory::WriteRestAddress(const RestAddress& address) const {
  const nlohmann::json json = {{"port", address.port},
                               {"pid", address.pid},
                               {"host", address.host},
                               {"advertise", address.advertise},
                               {"certificates", address.certificates}};
  return WriteFileAtomically(rest_address(), JsonText(json) + "\n");
}

void StateDirectory::RemoveRestAddress() const {
  RemoveFile(rest_address());
}

absl::StatusOr<RestAddress> StateDirectory::ReadRestAddress() const {
  absl::StatusOr<std::string> text = ReadFile(rest_address(), kSmallFileMax);
  if (!text.ok()) {
    return absl::NotFoundError(
        fmt::format("no scaler serves the job with the state directory {} (there is no {})", path_,
                    rest_address()));
  }
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  const auto number = [&json](const char* name, int64_t max) {
    const bool fits = json.is_object() && json.contains(name) && json[name].is_number_integer();
    const int64_t value = fits ? json[name].get<int64_t>() : 0;
    return value > 0 && value <= max ? value : 0;
  };
  RestAddress address{.port = static_cast<uint16_t>(number("port", UINT16_MAX)),
                      .pid = number("pid", INT32_MAX)};
  const auto read_text = [&json](const char* name, std::string* value) {
    if (json.is_object() && json.contains(name) && json[name].is_string()) {
      *value = json[name].get<std::string>();
    }
  };
  read_text("host", &address.host);
  read_text("advertise", &address.advertise);
  read_text("certificates", &address.certificates);
  if (address.port == 0 || address.pid == 0) {
    return absl::DataLossError(
        fmt::format("{} is damaged; the next scaler writes it again", rest_address()));
  }
  if (WasKilled(scaler() + "/lock", static_cast<pid_t>(address.pid))) {
    return absl::NotFoundError(
        fmt::format("the scaler (pid {}) of the job with the state directory {} has ended",
                    address.pid, path_));
  }
  return address;
}

absl::StatusOr<StateLock> StateLock::Open(const StateDirectory& directory) {
  const int fd = ::open(directory.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, fmt::format("cannot open {}", directory.lock()));
  return StateLock(fd);
}

absl::Status StateLock::Sign(const StateDirectory& directory) const {
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, pid.data(), pid.size(), 0) >= 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, fmt::format("cannot write {}", directory.lock()));
}

absl::StatusOr<StateLock> StateLock::AcquireOrPass(
    const StateDirectory& directory, std::chrono::milliseconds patience,
    const std::function<void(std::string_view)>& tell) {
  MUSTER_ASSIGN_OR_RETURN(StateLock lock, Open(directory));
  int error = 0;
  for (int tries = 0; tries <= patience / kRemainsPause; ++tries) {
    error = ::flock(lock.fd_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (error != EWOULDBLOCK) break;
    SleepFor(kRemainsPause);
  }
  if (error != 0) {
    tell(
        fmt::format("cannot lock {}; a machine that was lost may have it. It goes on without the "
                    "lock",
                    directory.lock()));
  }
  MUSTER_RETURN_IF_ERROR(lock.Sign(directory));
  return lock;
}

absl::StatusOr<StateLock> StateLock::Acquire(const StateDirectory& directory) {
  MUSTER_ASSIGN_OR_RETURN(StateLock lock, Open(directory));
  const int fd = lock.fd_;
  for (int tries = 0; ::flock(fd, LOCK_EX | LOCK_NB) != 0; ++tries) {
    const int error = errno;
    if (error != EWOULDBLOCK) {
      return ErrnoStatus(error, fmt::format("cannot lock {}", directory.lock()));
    }
    const pid_t holder = ReadPid(fd);
    const bool killed = holder > 0 && ::kill(holder, 0) != 0 && errno == ESRCH;
    if (killed && tries < kRemainsTries) {
      SleepFor(kRemainsPause);
      continue;
    }
    return InUse(directory, holder,
                 killed ? ", which was killed, but some of its nodes still run" : "");
  }
  MUSTER_RETURN_IF_ERROR(lock.Sign(directory));
  return lock;
}

absl::Status StateLock::CheckFree(const StateDirectory& directory) {
  const int fd = ::open(directory.lock().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::OkStatus();  // there was no run yet
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  // The lock is tried only if a live process holds it, because a try takes the lock for a moment.
  // The processes of a killed run end by themselves.
  const pid_t holder = ReadPid(fd);
  const bool alive = holder > 0 && (::kill(holder, 0) == 0 || errno != ESRCH);
  if (!alive || ::flock(fd, LOCK_SH | LOCK_NB) == 0) return absl::OkStatus();
  return InUse(directory, holder, "");
}

StateLock::~StateLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace muster
