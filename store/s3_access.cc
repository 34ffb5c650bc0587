#include "store/s3_access.h"

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "store/names/s3_request.h"

namespace muster {
namespace {

constexpr uint64_t kFileBytesMax = 64 << 10;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

/// It has a code of its own, because kNotFound would mean that an object is missing. The error may
/// pass when somebody writes the file again.
absl::Status Unreadable(const absl::Status& status) {
  return absl::PermissionDeniedError(
      fmt::format("the credentials file cannot be used: {}", Message(status)));
}

}  // namespace

absl::StatusOr<S3Options> CompleteOptions(S3Options options) {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (options.region.empty()) options.region = Environment(name);
  }
  if (options.region.empty()) options.region = "us-east-1";
  if (options.endpoint.empty()) {
    options.endpoint = Environment("AWS_ENDPOINT_URL");
    while (options.endpoint.ends_with('/')) options.endpoint.pop_back();
  }
  if (options.endpoint.empty()) options.endpoint = AwsEndpoint(options.region);
  MUSTER_RETURN_IF_ERROR(CheckRegion(options.region));
  MUSTER_RETURN_IF_ERROR(CheckEndpoint(options.endpoint));
  return options;
}

absl::StatusOr<S3Credentials> CredentialsSource::Get() {
  if (file_.empty()) {
    S3Credentials given{Environment("AWS_ACCESS_KEY_ID"), Environment("AWS_SECRET_ACCESS_KEY"),
                        Environment("AWS_SESSION_TOKEN")};
    if (given.access_key.empty() || given.secret_key.empty()) {
      return absl::FailedPreconditionError(
          "there are no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
          "spec.snapshots.s3.credentialsFile");
    }
    return given;
  }
  MutexLock lock(&mutex_);
  struct stat found = {};
  if (::stat(file_.c_str(), &found) != 0) {
    return Unreadable(ErrnoStatus(errno, file_));
  }
  if (known_.has_value() && SameFile(found, read_)) return *known_;
  const absl::StatusOr<std::string> text = ReadFile(file_, kFileBytesMax);
  if (!text.ok()) return Unreadable(text.status());
  absl::StatusOr<S3Credentials> parsed = ParseCredentials(*text);
  if (!parsed.ok()) return Unreadable(Annotate(parsed.status(), file_));
  known_ = *parsed;
  read_ = found;
  return *std::move(parsed);
}

}  // namespace muster
