#include "kubernetes/config/exec_plugin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/descriptors.h"
#include "base/status.h"
#include "base/text.h"
#include "kubernetes/model/json_access.h"
#include "kubernetes/model/timestamp.h"

namespace muster::kubernetes {
namespace {

constexpr size_t kPluginOutputMax = 1 << 20;
constexpr size_t kPluginErrorExcerpt = 400;

struct PluginPipe {
  OwnedFd read;
  OwnedFd write;
  std::string text;

  bool Open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read = OwnedFd(ends[0]);
    write = OwnedFd(ends[1]);
    return true;
  }
  /// Reads what has arrived. The reader closes at the end of the stream, or if it gets too much.
  void Take() {
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(read.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) return;
    if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
    if (count <= 0 || text.size() > kPluginOutputMax) read = OwnedFd();
  }
};

/// The value of KUBERNETES_EXEC_INFO for a plugin. `authority` is PEM, or empty.
std::string ExecInfo(const ClusterAccess& access, const std::string& authority) {
  nlohmann::json spec = {{"interactive", false}};
  if (access.exec->wants_cluster) {
    spec["cluster"] = {{"server", access.Url()}};
    if (!access.tls_server_name.empty()) {
      spec["cluster"]["tls-server-name"] = access.tls_server_name;
    }
    if (!authority.empty()) {
      spec["cluster"]["certificate-authority-data"] = absl::Base64Escape(authority);
    }
  }
  return ToText({{"apiVersion", access.exec->api_version},
                 {"kind", "ExecCredential"},
                 {"spec", std::move(spec)}});
}

/// Strings, and pointers to them in the form that exec needs.
class ArgumentList {
 public:
  void Add(std::string text) { texts_.push_back(std::move(text)); }
  char** Pointers() {
    pointers_.clear();
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
    return pointers_.data();
  }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

/// A running plugin, in a process group of its own.
class PluginProcess {
 public:
  PluginProcess() = default;
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;
  ~PluginProcess() { End(); }

  absl::Status Start(const ClusterAccess& access) {
    const ExecPlugin& plugin = *access.exec;
    MUSTER_ASSIGN_OR_RETURN(const std::string authority, ReadPem(access.authority));
    if (!output_.Open() || !error_.Open()) return ErrnoStatus(errno, "cannot make a pipe");
    ArgumentList arguments;
    arguments.Add(plugin.command);
    for (const std::string& argument : plugin.arguments) arguments.Add(argument);
    ArgumentList environment;
    // If two entries have the same name, the first one counts.
    environment.Add("KUBERNETES_EXEC_INFO=" + ExecInfo(access, authority));
    for (const auto& [name, value] : plugin.environment) environment.Add(name + "=" + value);
    for (char** entry = ::environ; *entry != nullptr; ++entry) environment.Add(*entry);
    const int failure = Spawn(plugin.command, arguments.Pointers(), environment.Pointers());
    output_.write = OwnedFd();
    error_.write = OwnedFd();
    if (failure != 0) {
      const std::string hint = plugin.install_hint.empty() ? "" : " " + plugin.install_hint;
      return ErrnoStatus(failure, fmt::format("cannot start it.{}", hint));
    }
    ended_ = OpenProcess(pid_);
    if (ended_.get() < 0) return ErrnoStatus(errno, "cannot watch it");
    return absl::OkStatus();
  }

  /// Reads until the process has ended, and then what is left in its pipes. It does not wait for
  /// the ends of the pipes, because another process may hold them open for longer.
  absl::Status Wait(TimePoint deadline, const Clock& clock) {
    while (true) {
      const bool runs = ended_.get() >= 0;
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.Now()).count();
      if (runs && left <= 0) return absl::DeadlineExceededError("it did not end in time");
      std::array<pollfd, 3> wanted{{{output_.read.get(), POLLIN, 0},
                                    {error_.read.get(), POLLIN, 0},
                                    {ended_.get(), POLLIN, 0}}};
      const int count = ::poll(wanted.data(), wanted.size(), runs ? static_cast<int>(left) : 0);
      if (count < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
      if (count == 0 && !runs) break;
      if (count <= 0) continue;
      if (wanted[0].revents != 0) output_.Take();
      if (wanted[1].revents != 0) error_.Take();
      if (wanted[2].revents != 0) End();
    }
    if (output_.text.size() > kPluginOutputMax) {
      return absl::InvalidArgumentError("it prints more than 1 MiB");
    }
    if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0) return absl::OkStatus();
    const bool exited = WIFEXITED(status_);
    return absl::UnauthenticatedError(
        fmt::format("it ended with {} {}", exited ? "exit code" : "signal",
                    exited ? WEXITSTATUS(status_) : WTERMSIG(status_)));
  }

  const std::string& output() const { return output_.text; }
  const std::string& error() const { return error_.text; }

 private:
  int Spawn(const std::string& command, char** arguments, char** environment) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, output_.write.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, error_.write.get(), STDERR_FILENO);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    const int failure =
        ::posix_spawnp(&pid_, command.c_str(), &files, &attributes, arguments, environment);
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    if (failure != 0) pid_ = 0;
    return failure;
  }

  void End() {
    ended_ = OwnedFd();
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
  }

  pid_t pid_ = 0;
  int status_ = 0;
  OwnedFd ended_;
  PluginPipe output_;
  PluginPipe error_;
};

}  // namespace

absl::StatusOr<Credentials> ParseExecCredential(std::string_view text,
                                                std::string_view api_version) {
  // The text contains secrets, so no message quotes it.
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded() || TextAt(document, {"kind"}) != "ExecCredential") {
    return absl::InvalidArgumentError("it does not print an ExecCredential");
  }
  if (TextAt(document, {"apiVersion"}) != api_version) {
    return absl::InvalidArgumentError(
        fmt::format("it prints credentials of the version \"{}\", not \"{}\"",
                    Excerpt(TextAt(document, {"apiVersion"}), 80), api_version));
  }
  Credentials credentials{
      .token = TextAt(document, {"status", "token"}),
      .client_certificate = TextAt(document, {"status", "clientCertificateData"}),
      .client_key = TextAt(document, {"status", "clientKeyData"})};
  const bool has_pair = !credentials.client_certificate.empty() && !credentials.client_key.empty();
  if (credentials.token.empty() && !has_pair) {
    return absl::InvalidArgumentError("it prints neither a token nor a certificate with its key");
  }
  const std::string expires = TextAt(document, {"status", "expirationTimestamp"});
  credentials.expires = ParseTimestamp(expires);
  if (!expires.empty() && !credentials.expires) {
    return absl::InvalidArgumentError(
        fmt::format("its expirationTimestamp \"{}\" is no time", Excerpt(expires, 40)));
  }
  return credentials;
}

absl::StatusOr<Credentials> RunExecPlugin(const ClusterAccess& access,
                                          std::chrono::milliseconds deadline) {
  const SystemClock clock;
  const TimePoint end = clock.Now() + deadline;
  PluginProcess process;
  absl::Status status = process.Start(access);
  if (status.ok()) status = process.Wait(end, clock);
  const std::string what = fmt::format("the credential plugin {}", access.exec->command);
  if (!status.ok()) {
    const std::string said = Excerpt(process.error(), kPluginErrorExcerpt);
    return Annotate(status, said.empty() ? what : fmt::format("{} (\"{}\")", what, said));
  }
  absl::StatusOr<Credentials> credentials =
      ParseExecCredential(process.output(), access.exec->api_version);
  if (!credentials.ok()) return Annotate(credentials.status(), what);
  return credentials;
}

}  // namespace muster::kubernetes
