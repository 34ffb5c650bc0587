#include "base/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr size_t kTokenBytes = 32;

/// Who may own the file.
enum class TokenOwner : uint8_t { kUs, kAnybodyForRoot };

absl::Status Unfit(const std::string& path, std::string_view what) {
  return absl::FailedPreconditionError(
      fmt::format("the token file {} {}; remove it, then Muster makes a new token", path, what));
}

struct FoundToken {
  absl::StatusOr<std::string> token;
  /// The file is ours, but its mode is wrong, so we may replace it.
  bool replaceable = false;
};

absl::StatusOr<std::string> MakeToken() {
  std::array<uint8_t, kTokenBytes> bytes;
  // One call of getrandom() returns up to 256 bytes.
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return ErrnoStatus(errno, "cannot draw a random token");
  }
  std::string token;
  for (const uint8_t byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

/// Checks the open descriptor, so the checked file is the file that is read.
FoundToken ReadToken(int fd, const std::string& path, TokenOwner owner) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return {ErrnoStatus(errno, fmt::format("cannot examine {}", path))};
  if (!S_ISREG(info.st_mode)) return {Unfit(path, "is not a regular file")};
  const bool root_asks = owner == TokenOwner::kAnybodyForRoot && ::geteuid() == 0;
  if (info.st_uid != ::geteuid() && !root_asks) return {Unfit(path, "belongs to another user")};
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return {
        Unfit(path, fmt::format("has mode {:04o}, so others may have read it, but must have 0600",
                                info.st_mode & 07777)),
        info.st_uid == ::geteuid()};
  }
  std::array<char, 2 * kTokenBytes + 2> bytes;
  const ssize_t got = ::read(fd, bytes.data(), bytes.size());
  if (got < 0) return {ErrnoStatus(errno, fmt::format("cannot read {}", path))};
  std::string token(bytes.data(), static_cast<size_t>(got));
  if (token.ends_with('\n')) token.pop_back();
  const bool hexadecimal = std::ranges::all_of(
      token, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (token.size() != 2 * kTokenBytes || !hexadecimal) {
    return {Unfit(path, "does not contain 64 hexadecimal digits")};
  }
  return {std::move(token)};
}

bool IsOurFile(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid();
}

FoundToken OpenToken(const std::string& path, TokenOwner owner) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd >= 0) {
    FoundToken found = ReadToken(fd, path, owner);
    ::close(fd);
    return found;
  }
  const int error = errno;
  if (error == ELOOP) return {Unfit(path, "is a symbolic link")};
  if (error == ENOENT) return {absl::NotFoundError(fmt::format("there is no {}", path))};
  return {ErrnoStatus(error, fmt::format("cannot open {}", path)),
          error == EACCES && IsOurFile(path)};
}

}  // namespace

absl::StatusOr<std::string> LoadToken(const std::string& path) {
  return OpenToken(path, TokenOwner::kAnybodyForRoot).token;
}

absl::StatusOr<std::string> LoadOrMakeToken(const std::string& path) {
  // Without it, two threads could each make a token, and the first token would be outdated at once.
  static Mutex one_at_a_time;
  const MutexLock lock(&one_at_a_time);
  FoundToken found = OpenToken(path, TokenOwner::kUs);
  if (!absl::IsNotFound(found.token.status()) && !found.replaceable) return std::move(found.token);
  MUSTER_ASSIGN_OR_RETURN(std::string token, MakeToken());
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(path, token + "\n", FileAccess::kOwnerOnly));
  if (found.replaceable) {
    const std::string_view why = Message(found.token.status());
    Log(LogLevel::kWarning, "{}: it was replaced by a new token", why.substr(0, why.find(';')));
  }
  return token;
}

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  // It is volatile, because otherwise the compiler could leave the loop at the first difference.
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = difference | static_cast<uint8_t>(a[i] ^ b[i]);
  }
  return difference == 0;
}

}  // namespace muster
