#include "store/names/place.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "http/url/url.h"

namespace muster {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr size_t kPrefixBytesMax = 512;  // a key may have 1,024

bool IsLowerOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool IsBucketName(std::string_view name) {
  return name.size() >= 3 && name.size() <= 63 && IsLowerOrDigit(name.front()) &&
         IsLowerOrDigit(name.back()) && std::ranges::all_of(name, [](char c) {
           return IsLowerOrDigit(c) || c == '-' || c == '.';
         });
}

/// A prefix must be printable, so that it is one line in a log and in an XML document.
bool IsPrefix(std::string_view prefix) {
  if (prefix.size() > kPrefixBytesMax) return false;
  if (!std::ranges::all_of(prefix, [](char c) { return c > ' ' && c < 0x7f; })) return false;
  const std::string slashed = "/" + std::string(prefix) + "/";
  return slashed.find("/../") == std::string::npos && slashed.find("/./") == std::string::npos &&
         (prefix.empty() || slashed.find("//") == std::string::npos);
}

absl::Status SetOption(std::string_view name, std::string value, S3Options* options) {
  if (name == "endpoint") {
    options->endpoint = std::move(value);
    return CheckEndpoint(options->endpoint);
  }
  if (name == "region") {
    options->region = std::move(value);
    return CheckRegion(options->region);
  }
  if (name == "path-style") {
    options->path_style = value == "true";
  } else if (name == "credentials-file") {
    options->credentials_file = std::move(value);
  } else if (name == "ca-file") {
    options->ca_file = std::move(value);
  } else {
    return absl::InvalidArgumentError(fmt::format("the option '{}' is not known", name));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsS3Place(std::string_view place) {
  return place.starts_with(kScheme);
}

absl::Status CheckRegion(std::string_view region) {
  if (std::ranges::all_of(region, [](char c) { return IsLowerOrDigit(c) || c == '-'; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("expected a region such as eu-central-1, got '{}'", region));
}

absl::Status CheckEndpoint(std::string_view endpoint) {
  std::string_view host = endpoint;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (host.starts_with(scheme)) host.remove_prefix(scheme.size());
  }
  if (host.size() == endpoint.size() || host.empty() ||
      host.find_first_of("/?#@ \t\n") != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format(
        "expected an endpoint such as https://s3.example.org:9000, got '{}'", endpoint));
  }
  return absl::OkStatus();
}

absl::StatusOr<S3Place> ParseS3Place(std::string_view place) {
  const auto wrong = [shown = ShownPlace(place)](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("'{}': {}", shown, what));
  };
  std::string_view rest = place.substr(kScheme.size());
  std::string_view query;
  if (const size_t mark = rest.find('?'); mark != std::string_view::npos) {
    query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  S3Place parsed;
  const size_t slash = rest.find('/');
  parsed.bucket = rest.substr(0, slash);
  if (slash != std::string_view::npos) parsed.prefix = rest.substr(slash + 1);
  while (parsed.prefix.ends_with('/')) parsed.prefix.pop_back();
  if (!IsBucketName(parsed.bucket)) {
    return wrong(fmt::format(
        "'{}' is not the name of a bucket (3 to 63 lower-case letters, digits, hyphens and dots)",
        parsed.bucket));
  }
  if (!IsPrefix(parsed.prefix)) {
    return wrong(
        fmt::format("'{}' is not a prefix of keys: at most {} printable ASCII characters, "
                    "without spaces and empty parts",
                    parsed.prefix, kPrefixBytesMax));
  }
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) return wrong("an option has no value");
    const absl::Status set =
        SetOption(pair.substr(0, equals), UrlDecode(pair.substr(equals + 1)), &parsed.options);
    if (!set.ok()) return wrong(Message(set));
  }
  return parsed;
}

std::string ToText(const S3Place& place) {
  std::string text = fmt::format("{}{}", kScheme, place.bucket);
  if (!place.prefix.empty()) text += "/" + place.prefix;
  char separator = '?';
  const auto add = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    text += fmt::format("{}{}={}", separator, name, UrlEncode(value));
    separator = '&';
  };
  add("endpoint", place.options.endpoint);
  add("region", place.options.region);
  add("path-style", place.options.path_style ? "true" : "");
  add("credentials-file", place.options.credentials_file);
  add("ca-file", place.options.ca_file);
  return text;
}

std::string ShownPlace(std::string_view place) {
  return std::string(IsS3Place(place) ? place.substr(0, place.find('?')) : place);
}

absl::StatusOr<std::string> PlaceWithOptions(std::string_view uri, const S3Options& options) {
  if (uri.find('?') != std::string_view::npos) {
    return absl::InvalidArgumentError(fmt::format("'{}': a place has no '?'", uri));
  }
  MUSTER_ASSIGN_OR_RETURN(S3Place place, ParseS3Place(uri));
  place.options = options;
  return ToText(place);
}

}  // namespace muster
