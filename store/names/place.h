#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Where objects are, as one line of text: the path of a folder, or
/// "s3://bucket/prefix?endpoint=...&region=...". So a place can be used wherever a path can: in
/// messages, in the journal, in a manifest. Pure.
namespace muster {

/// How to reach a bucket. It never contains secrets, only the file that has them. Empty fields are
/// taken from the environment (store/s3_access.h).
struct S3Options {
  std::string endpoint;  // "https://host:port", without a path
  std::string region;
  bool path_style = false;  // host/bucket/key instead of bucket.host/key
  /// An absolute path.
  std::string credentials_file;
  std::string ca_file;  // certificates of authorities, PEM; empty: the system's
  friend bool operator==(const S3Options&, const S3Options&) = default;
};

struct S3Place {
  std::string bucket;
  std::string prefix;  // without a slash at either end; may be empty
  S3Options options;
  friend bool operator==(const S3Place&, const S3Place&) = default;
};

/// True if the place is a bucket and not a folder: it begins with "s3://".
bool IsS3Place(std::string_view place);

/// kInvalidArgument says what is wrong with the place. Requires: IsS3Place(place).
absl::StatusOr<S3Place> ParseS3Place(std::string_view place);

/// The inverse of ParseS3Place.
std::string ToText(const S3Place& place);

/// The place without its options, for people: "s3://bucket/prefix", or the folder.
std::string ShownPlace(std::string_view place);

/// `uri` ("s3://bucket/prefix") with these options. An error says what is wrong with it.
absl::StatusOr<std::string> PlaceWithOptions(std::string_view uri, const S3Options& options);

/// A region is letters, digits and hyphens; empty is OK.
absl::Status CheckRegion(std::string_view region);

/// The endpoint is "http://host" or "https://host", with or without a port.
absl::Status CheckEndpoint(std::string_view endpoint);

}  // namespace muster
