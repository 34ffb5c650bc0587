#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "store/names/credentials.h"
#include "store/names/place.h"

namespace muster {

/// Fills in missing options: the region (AWS_REGION, AWS_DEFAULT_REGION, then us-east-1) and the
/// endpoint (AWS_ENDPOINT_URL, then AWS's endpoint for the region).
absl::StatusOr<S3Options> CompleteOptions(S3Options options);

/// The credentials of a place. They come from its file, which is read again when it changes, or
/// from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN). Thread-safe.
class CredentialsSource {
 public:
  explicit CredentialsSource(std::string file) : file_(std::move(file)) {}
  /// kFailedPrecondition if the environment has none. kPermissionDenied if the file cannot be used.
  /// Errors name the file and never show its contents.
  absl::StatusOr<S3Credentials> Get();

 private:
  const std::string file_;
  Mutex mutex_;
  std::optional<S3Credentials> known_ MUSTER_GUARDED_BY(mutex_);
  struct stat read_ MUSTER_GUARDED_BY(mutex_) = {};  // of the file, when it was read
};

}  // namespace muster
