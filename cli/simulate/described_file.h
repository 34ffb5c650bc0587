#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "scaler/simulate/described_spec.h"

namespace muster::simulate {

inline constexpr uint64_t kDescribedBytesMax = 1 << 20;
inline constexpr size_t kHappeningsMax = 1'000;

/// Reads the text of a described job (docs/cli.md). Errors: kInvalidArgument with
/// "file:line:column: field: what".
absl::StatusOr<scaler::DescribedSpec> ReadDescribed(std::string_view text,
                                                    const std::string& file_name);

}  // namespace muster::simulate
