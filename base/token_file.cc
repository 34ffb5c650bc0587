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

#include "base/file.h"
#include "base/status.h"

namespace muster {
namespace {

constexpr size_t kTokenBytes = 32;

/// Whose file it may be.
enum class TokenOwner : uint8_t { kUs, kAnybodyForRoot };

absl::Status Unfit(const std::string& path, std::string_view what) {
  return absl::FailedPreconditionError(
      fmt::format("the token file {} {}; remove it, and a new token is made", path, what));
}

absl::StatusOr<std::string> MakeToken() {
  std::array<uint8_t, kTokenBytes> bytes;
  // Up to 256 bytes come whole.
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return ErrnoStatus(errno, "cannot draw a random token");
  }
  std::string token;
  for (const uint8_t byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

/// Looked at through the descriptor, so that what is checked is what is read.
absl::StatusOr<std::string> ReadToken(int fd, const std::string& path, TokenOwner owner) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, fmt::format("cannot examine {}", path));
  if (!S_ISREG(info.st_mode)) return Unfit(path, "is no regular file");
  const bool root_asks = owner == TokenOwner::kAnybodyForRoot && ::geteuid() == 0;
  if (info.st_uid != ::geteuid() && !root_asks) return Unfit(path, "belongs to another user");
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Unfit(path, fmt::format("has mode {:04o}: others may have read it, 0600 is needed",
                                   info.st_mode & 07777));
  }
  std::array<char, 2 * kTokenBytes + 2> bytes;
  const ssize_t got = ::read(fd, bytes.data(), bytes.size());
  if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", path));
  std::string token(bytes.data(), static_cast<size_t>(got));
  if (token.ends_with('\n')) token.pop_back();
  const bool hexadecimal = std::ranges::all_of(
      token, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (token.size() != 2 * kTokenBytes || !hexadecimal) {
    return Unfit(path, "does not hold 64 hexadecimal digits");
  }
  return token;
}

absl::StatusOr<std::string> OpenToken(const std::string& path, TokenOwner owner) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd >= 0) {
    absl::StatusOr<std::string> token = ReadToken(fd, path, owner);
    ::close(fd);
    return token;
  }
  if (errno == ELOOP) return Unfit(path, "is a symbolic link");
  if (errno == ENOENT) return absl::NotFoundError(fmt::format("there is no {}", path));
  return ErrnoStatus(errno, fmt::format("cannot open {}", path));
}

}  // namespace

absl::StatusOr<std::string> LoadToken(const std::string& path) {
  return OpenToken(path, TokenOwner::kAnybodyForRoot);
}

absl::StatusOr<std::string> LoadOrMakeToken(const std::string& path) {
  absl::StatusOr<std::string> token = OpenToken(path, TokenOwner::kUs);
  if (!absl::IsNotFound(token.status())) return token;
  MUSTER_ASSIGN_OR_RETURN(token, MakeToken());
  MUSTER_RETURN_IF_ERROR(WriteFileAtomically(path, *token + "\n", FileAccess::kOwnerOnly));
  return token;
}

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  // volatile: or the compiler may leave the loop at the first difference.
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = difference | static_cast<uint8_t>(a[i] ^ b[i]);
  }
  return difference == 0;
}

}  // namespace muster
