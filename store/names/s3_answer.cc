#include "store/names/s3_answer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <pugixml.hpp>

#include "base/status.h"

namespace muster {
namespace {

constexpr size_t kWordsMax = 300;  // the most bytes of a message from outside

absl::StatusOr<pugi::xml_node> Root(std::string_view document, const char* name,
                                    pugi::xml_document* xml) {
  const pugi::xml_parse_result result =
      xml->load_buffer(document.data(), document.size(), pugi::parse_default, pugi::encoding_utf8);
  const pugi::xml_node root = xml->child(name);
  if (result && root) return root;
  return absl::DataLossError(fmt::format(
      "the answer is not S3's document {}; is the endpoint an S3 server? It begins '{}'", name,
      document.substr(0, 80)));
}

bool IsTrue(const pugi::xml_node& node) {
  return std::string_view(node.child_value()) == "true";
}

std::string Bounded(std::string_view text) {
  std::string words(text.substr(0, kWordsMax));
  std::ranges::replace_if(words, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return words;
}

struct Meaning {
  std::string_view code;
  absl::StatusCode status;
  std::string_view advice;
};

constexpr std::array kMeanings = {
    Meaning{"NoSuchBucket", absl::StatusCode::kFailedPrecondition,
            "the bucket does not exist. Create it, or name another one"},
    Meaning{"NoSuchKey", absl::StatusCode::kNotFound, "the object does not exist"},
    Meaning{"NoSuchUpload", absl::StatusCode::kNotFound, "the upload has ended"},
    Meaning{"AccessDenied", absl::StatusCode::kPermissionDenied,
            "these credentials do not have the right. They need to list the bucket, and to get, "
            "put and delete objects"},
    Meaning{"AllAccessDisabled", absl::StatusCode::kPermissionDenied, "access is disabled"},
    Meaning{"InvalidAccessKeyId", absl::StatusCode::kPermissionDenied,
            "the service does not know the access key"},
    Meaning{"SignatureDoesNotMatch", absl::StatusCode::kPermissionDenied,
            "the secret key is wrong, or a proxy changes the requests"},
    Meaning{"ExpiredToken", absl::StatusCode::kPermissionDenied,
            "the session token has expired. Write a new one into the credentials file"},
    Meaning{"InvalidToken", absl::StatusCode::kPermissionDenied, "the session token is wrong"},
    Meaning{"RequestTimeTooSkewed", absl::StatusCode::kPermissionDenied,
            "the clock of this machine differs too much from that of the service. Set it"},
    Meaning{"PermanentRedirect", absl::StatusCode::kFailedPrecondition,
            "the bucket is in another region or at another endpoint. Set spec.snapshots.s3.region"},
    Meaning{"AuthorizationHeaderMalformed", absl::StatusCode::kFailedPrecondition,
            "the region is wrong. Set spec.snapshots.s3.region"},
    Meaning{"IllegalLocationConstraintException", absl::StatusCode::kFailedPrecondition,
            "the region is wrong. Set spec.snapshots.s3.region"},
    Meaning{"PreconditionFailed", absl::StatusCode::kAlreadyExists, "it exists already"},
    Meaning{"NotImplemented", absl::StatusCode::kUnimplemented,
            "the service does not have this operation"},
    Meaning{"QuotaExceeded", absl::StatusCode::kResourceExhausted, "the bucket is full"},
    Meaning{"XMinioStorageFull", absl::StatusCode::kResourceExhausted, "the service is full"},
};

constexpr std::array<std::string_view, 9> kPassing = {"SlowDown",
                                                      "InternalError",
                                                      "ServiceUnavailable",
                                                      "RequestTimeout",
                                                      "RequestTimeOut",
                                                      "BadDigest",
                                                      "XAmzContentSHA256Mismatch",
                                                      "Throttling",
                                                      "ConditionalRequestConflict"};

/// The meaning of a status without a document, because an answer to HEAD has none.
std::string_view CodeOf(const S3Error& error) {
  if (!error.code.empty()) return error.code;
  switch (error.http) {
    case 301:
      return "PermanentRedirect";
    case 403:
      return "AccessDenied";
    case 404:
      return "NoSuchKey";
    case 412:
      return "PreconditionFailed";
    case 501:
      return "NotImplemented";
    default:
      return "";
  }
}

}  // namespace

S3Error ParseS3Error(int http, std::string_view document) {
  S3Error error{.http = http, .code = {}, .message = {}, .region = {}};
  pugi::xml_document xml;
  const absl::StatusOr<pugi::xml_node> root = Root(document, "Error", &xml);
  if (!root.ok()) return error;
  error.code = Bounded(root->child_value("Code"));
  error.message = Bounded(root->child_value("Message"));
  error.region = Bounded(root->child_value("Region"));
  return error;
}

bool MayPass(const S3Error& error) {
  if (std::ranges::find(kPassing, error.code) != kPassing.end()) return true;
  if (error.http == 501) return false;
  return error.http >= 500 || error.http == 429 || error.http == 408;
}

absl::Status ToStatus(const S3Error& error, std::string_view what) {
  const std::string_view code = CodeOf(error);
  std::string text = fmt::format("{}: ", what);
  const auto* const meaning = std::ranges::find(kMeanings, code, &Meaning::code);
  if (meaning != kMeanings.end()) text += meaning->advice;
  if (!error.region.empty() && (error.http == 301 || error.http == 400)) {
    text += fmt::format(" (the bucket is in {})", error.region);
  }
  text += fmt::format("{}S3 answered {}", meaning != kMeanings.end() ? ". " : "", error.http);
  if (!code.empty()) text += fmt::format(" {}", code);
  if (!error.message.empty()) text += fmt::format(": {}", error.message);
  if (MayPass(error)) return absl::UnavailableError(text);
  if (meaning != kMeanings.end()) return absl::Status(meaning->status, text);
  return absl::FailedPreconditionError(text);
}

absl::StatusOr<S3Keys> ParseKeys(std::string_view document) {
  pugi::xml_document xml;
  MUSTER_ASSIGN_OR_RETURN(const pugi::xml_node root, Root(document, "ListBucketResult", &xml));
  S3Keys page;
  for (const pugi::xml_node entry : root.children("Contents")) {
    page.keys.emplace_back(entry.child_value("Key"));
  }
  if (IsTrue(root.child("IsTruncated"))) {
    page.next = root.child_value("NextContinuationToken");
    if (page.next.empty()) {
      return absl::DataLossError("a listing is incomplete, but does not say how to go on");
    }
  }
  return page;
}

absl::StatusOr<S3Uploads> ParseUploads(std::string_view document) {
  pugi::xml_document xml;
  MUSTER_ASSIGN_OR_RETURN(const pugi::xml_node root,
                          Root(document, "ListMultipartUploadsResult", &xml));
  S3Uploads page;
  page.truncated = IsTrue(root.child("IsTruncated"));
  for (const pugi::xml_node entry : root.children("Upload")) {
    page.uploads.push_back({entry.child_value("Key"), entry.child_value("UploadId")});
  }
  page.next_key = root.child_value("NextKeyMarker");
  page.next_id = root.child_value("NextUploadIdMarker");
  if (page.truncated && page.next_key.empty()) {
    return absl::DataLossError("a listing is incomplete, but does not say how to go on");
  }
  return page;
}

absl::StatusOr<std::string> ParseUploadId(std::string_view document) {
  pugi::xml_document xml;
  MUSTER_ASSIGN_OR_RETURN(const pugi::xml_node root,
                          Root(document, "InitiateMultipartUploadResult", &xml));
  std::string id = root.child_value("UploadId");
  if (id.empty()) return absl::DataLossError("an upload was begun, but has no id");
  return id;
}

std::optional<ContentRange> ParseContentRange(std::string_view header) {
  constexpr std::string_view kUnit = "bytes ";
  if (!header.starts_with(kUnit)) return std::nullopt;
  header.remove_prefix(kUnit.size());
  ContentRange range;
  const char* at = header.data();
  const char* const end = at + header.size();
  const auto take = [&](uint64_t* number, char separator) {
    const auto [last, error] = std::from_chars(at, end, *number);
    if (error != std::errc()) return false;
    at = last;
    if (separator == '\0') return at == end;
    return at != end && *at++ == separator;
  };
  if (!take(&range.first, '-') || !take(&range.last, '/') || !take(&range.object_bytes, '\0') ||
      range.first > range.last || range.last >= range.object_bytes) {
    return std::nullopt;
  }
  return range;
}

absl::StatusOr<std::vector<S3Undeleted>> ParseUndeleted(std::string_view document) {
  pugi::xml_document xml;
  MUSTER_ASSIGN_OR_RETURN(const pugi::xml_node root, Root(document, "DeleteResult", &xml));
  std::vector<S3Undeleted> undeleted;
  for (const pugi::xml_node entry : root.children("Error")) {
    S3Undeleted& left = undeleted.emplace_back();
    left.key = entry.child_value("Key");
    left.error.http = 200;
    left.error.code = Bounded(entry.child_value("Code"));
    left.error.message = Bounded(entry.child_value("Message"));
  }
  return undeleted;
}

absl::Status CheckCompleted(std::string_view document) {
  pugi::xml_document xml;
  return Root(document, "CompleteMultipartUploadResult", &xml).status();
}

bool IsErrorDocument(std::string_view document) {
  pugi::xml_document xml;
  return Root(document, "Error", &xml).ok();
}

}  // namespace muster
