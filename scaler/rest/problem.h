#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "scaler/rest/http_message.h"

namespace muster::scaler::rest {

/// A field of a request that is not as it must be.
struct FieldError {
  std::string in;     // path, query, body
  std::string field;  // its name
  std::string message;
};

/// An error as people and programs get it.
/// Source: RFC 9457; `type` is urn:muster:problem:CODE.
struct Problem {
  int status = 500;
  std::string code;  // "invalid-field"
  std::string detail;
  std::vector<FieldError> errors;
  /// Seconds, for Retry-After; 0: none.
  int retry_after_s = 0;
};

/// As application/problem+json.
Response ToResponse(const Problem& problem);

/// What JobApi's errors become.
Problem ProblemOf(const absl::Status& status);

/// "Not Found".
std::string_view ReasonPhrase(int status);

/// The schema of an error, for /openapi.json, as text.
std::string_view ProblemSchemaText();

}  // namespace muster::scaler::rest
