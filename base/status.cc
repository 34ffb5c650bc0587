#include "base/status.h"

namespace muster {

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), fmt::format("{}: {}", context, Message(status)));
}

absl::Status ErrnoStatus(int error_number, std::string_view what) {
  return absl::ErrnoToStatus(error_number, {what.data(), what.size()});
}

}  // namespace muster
