#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Parses the answers of S3: the few necessary fields of its XML documents, and the meaning of its
/// errors. Pure. If a document is not the expected one, the error is kDataLoss.
namespace muster {

struct S3Error {
  int http = 0;         // the status of the answer
  std::string code;     // "SlowDown"; empty if the answer had no document
  std::string message;  // S3's own words
  std::string region;   // where the bucket is, if the answer says so
};

/// Parses the document of an error, as far as it is one.
S3Error ParseS3Error(int http, std::string_view document);

/// True if the same request may succeed a moment later.
bool MayPass(const S3Error& error);

/// The error as a status that says what to do. `what` says what was tried: "cannot write
/// s3://b/p/x". kUnavailable: the service is away or busy. kNotFound: the object or the bucket is
/// missing. kAlreadyExists: a condition of the request was not met. kPermissionDenied,
/// kFailedPrecondition: a person must change something.
absl::Status ToStatus(const S3Error& error, std::string_view what);

/// A page of a listing.
struct S3Keys {
  std::vector<std::string> keys;
  std::string next;  // the token for the next page; empty: this is the last one
};
absl::StatusOr<S3Keys> ParseKeys(std::string_view document);

/// Uploads in parts that have begun and not ended.
struct S3Uploads {
  struct Upload {
    std::string key;
    std::string id;
  };
  std::vector<Upload> uploads;
  bool truncated = false;  // there are more
  // They ask for the next page, if there is one.
  std::string next_key;
  std::string next_id;
};
absl::StatusOr<S3Uploads> ParseUploads(std::string_view document);

/// The id of an upload that was just begun.
absl::StatusOr<std::string> ParseUploadId(std::string_view document);

/// The value of a header "Content-Range".
struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t object_bytes = 0;
  friend bool operator==(const ContentRange&, const ContentRange&) = default;
};
/// Parses "bytes FIRST-LAST/BYTES". None if the text is something else, or if no object of this
/// size can have this range.
std::optional<ContentRange> ParseContentRange(std::string_view header);

/// An object that still exists although it should be deleted.
struct S3Undeleted {
  std::string key;
  S3Error error;
};
/// The answer to a list of objects to delete.
absl::StatusOr<std::vector<S3Undeleted>> ParseUndeleted(std::string_view document);

/// True if the document is an error. The answers to the end of an upload in parts, and to a list to
/// delete, may be errors although their status is 200.
bool IsErrorDocument(std::string_view document);

/// OK if the document says that an upload in parts has become an object.
absl::Status CheckCompleted(std::string_view document);

}  // namespace muster
