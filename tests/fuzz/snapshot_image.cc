#include <memory>
#include <span>

#include "base/check.h"
#include "base/status.h"
#include "ps/snapshot/image_codec.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {
namespace {

using ps::PartitionImage;

/// What was accepted, written and read again, is the same state.
void CheckRestored(const ps::SnapshotIdentity& identity, const PartitionImage& image) {
  ps::Partition partition(identity.partition, 7);
  if (!partition.Restore(identity.number, {&image, 1}).ok()) return;
  MUSTER_CHECK(partition.UnchangedSinceAccepted());
  const PartitionImage copy = partition.Snapshot(identity.number, ps::SnapshotKind::kBase);
  ps::ImageDecoder decoder;
  const absl::Status encoded = ps::EncodeImage(
      identity, copy,
      [&](std::string_view key, std::string_view value) { return decoder.Add(key, value); });
  MUSTER_CHECK_MSG(encoded.ok(), encoded.ToString());
  const auto again = decoder.Finish();
  MUSTER_CHECK_MSG(again.ok(), again.status().ToString());
  ps::Partition twin(identity.partition, 7);
  MUSTER_CHECK(twin.Restore(identity.number, {&*again, 1}).ok());
  MUSTER_CHECK(twin.sizes().rows == partition.sizes().rows);
  MUSTER_CHECK(twin.sizes().window_shards == partition.sizes().window_shards);
  MUSTER_CHECK(twin.floor() == partition.floor());
}

}  // namespace

void FuzzSnapshotImage(std::string_view bytes) {
  FuzzInput input(bytes);
  ps::ImageDecoder decoder;
  bool any = false;
  while (!input.empty()) {
    const std::string_view key = input.Sized();
    if (!decoder.Add(key, input.Sized()).ok()) return;
    any = true;
  }
  auto image = decoder.Finish();
  if (!image.ok()) return;
  MUSTER_CHECK(any);
  if (image->kind == ps::SnapshotKind::kBase) CheckRestored(decoder.identity(), *image);
}

}  // namespace muster::testing
