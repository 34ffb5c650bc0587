#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/names/place.h"

/// The names, URLs and documents of requests to S3. Pure.
namespace muster {

/// The names and values of a request's query, not encoded.
using S3Query = std::vector<std::pair<std::string, std::string>>;

/// The URL of the object `name` below the place's prefix. If `name` is empty, the URL of the
/// bucket. The query is sorted, because the signature needs it in this order. Requires:
/// place.options.endpoint.
std::string S3Url(const S3Place& place, std::string_view name, S3Query query);

/// The key of an object: prefix and name.
std::string KeyOf(const S3Place& place, std::string_view name);

/// The name of the object with this key; empty if the key is not below the place's prefix.
std::string_view NameOf(const S3Place& place, std::string_view key);

/// The endpoint of a region of AWS.
std::string AwsEndpoint(std::string_view region);

/// The document that completes an upload in parts. `etags` are those of the parts, in order.
std::string CompleteDocument(const std::vector<std::string>& etags);

/// The document that deletes the objects with these keys. The answer names only objects that were
/// not deleted.
std::string DeleteDocument(const std::vector<std::string>& keys);

/// The size of each part of an upload of `bytes`: `wished`, or more if there would be over 10,000
/// parts.
uint64_t PartBytes(uint64_t bytes, uint64_t wished);

}  // namespace muster
