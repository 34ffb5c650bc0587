#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "scaler/rest/http_message.h"

namespace muster::scaler::rest {

/// A field of a request that is wrong.
struct FieldError {
  std::string in;     // path, query, body
  std::string field;  // its name
  std::string message;
};

/// An error in the form for people and programs. Source: RFC 9457; `type` is
/// urn:muster:problem:CODE.
struct Problem {
  int status = 500;
  std::string code;  // "invalid-field"
  std::string detail;
  std::vector<FieldError> errors;
  /// Seconds for Retry-After; 0: the answer has no such header.
  int retry_after_s = 0;
};

/// The answer, as application/problem+json.
Response ToResponse(const Problem& problem);

/// The problem for an error of JobApi.
Problem ProblemOf(const absl::Status& status);

/// The text of a status code, such as "Not Found".
std::string_view ReasonPhrase(int status);

/// The JSON Schema of an error as text, for /openapi.json.
std::string_view ProblemSchemaText();

}  // namespace muster::scaler::rest
