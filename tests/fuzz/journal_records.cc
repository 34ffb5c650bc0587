#include "base/check.h"
#include "base/status.h"
#include "master/journal/record_codec.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {

void FuzzJournalRecords(std::string_view bytes) {
  FuzzInput input(bytes);
  while (!input.empty()) {
    const std::string_view key = input.Sized();
    const std::string_view value = input.Sized();
    (void)DecodeHeader(value);
    const absl::StatusOr<Mutation> mutation = Decode(key, value);
    if (!mutation.ok()) continue;
    // What is accepted can be stored again, under the key where it was found.
    const StoreChange change = Encode(*mutation);
    MUSTER_CHECK(change.key == key);
    MUSTER_CHECK(change.value.has_value());
    const absl::StatusOr<Mutation> again = Decode(change.key, *change.value);
    MUSTER_CHECK_MSG(again.ok(), again.status().ToString());
    MUSTER_CHECK(Encode(*again).value == change.value);
  }
}

}  // namespace muster::testing
