#include "store/names/s3_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "http/url/url.h"

namespace muster {
namespace {

constexpr uint64_t kPartsMax = 10'000;

/// Escapes text for XML. An entity tag is quoted, so it may need this.
std::string XmlText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string KeyOf(const S3Place& place, std::string_view name) {
  if (place.prefix.empty()) return std::string(name);
  return fmt::format("{}/{}", place.prefix, name);
}

std::string_view NameOf(const S3Place& place, std::string_view key) {
  if (place.prefix.empty()) return key;
  if (!key.starts_with(place.prefix) || key.size() <= place.prefix.size() + 1 ||
      key[place.prefix.size()] != '/') {
    return {};
  }
  return key.substr(place.prefix.size() + 1);
}

std::string S3Url(const S3Place& place, std::string_view name, S3Query query) {
  const std::string_view endpoint = place.options.endpoint;
  const size_t host = endpoint.find("://") + 3;
  std::string url;
  if (place.options.path_style) {
    url = fmt::format("{}/{}", endpoint, place.bucket);
    if (!name.empty()) url += "/";
  } else {
    url = fmt::format("{}{}.{}/", endpoint.substr(0, host), place.bucket, endpoint.substr(host));
  }
  if (!name.empty()) url += UrlEncode(KeyOf(place, name), "/");
  std::ranges::sort(query);
  char separator = '?';
  for (const auto& [key, value] : query) {
    url += fmt::format("{}{}={}", separator, UrlEncode(key), UrlEncode(value));
    separator = '&';
  }
  return url;
}

std::string AwsEndpoint(std::string_view region) {
  return fmt::format("https://s3.{}.amazonaws.com", region);
}

std::string CompleteDocument(const std::vector<std::string>& etags) {
  std::string document = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < etags.size(); ++i) {
    document += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1,
                            XmlText(etags[i]));
  }
  return document + "</CompleteMultipartUpload>";
}

std::string DeleteDocument(const std::vector<std::string>& keys) {
  std::string document = "<Delete><Quiet>true</Quiet>";
  for (const std::string& key : keys) {
    document += fmt::format("<Object><Key>{}</Key></Object>", XmlText(key));
  }
  return document + "</Delete>";
}

uint64_t PartBytes(uint64_t bytes, uint64_t wished) {
  return std::max(wished, (bytes + kPartsMax - 1) / kPartsMax);
}

}  // namespace muster
