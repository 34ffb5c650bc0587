#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/targets.h"
#include "tests/worker_sdk/core/core_fixture.h"
#include "worker_sdk/net/internal/request_frame.h"

namespace muster::testing {
namespace {

using sdk::PartSender;
using sdk::SendRequest;
using sdk::SendRequests;

/// A pull of a dense tensor with a block or more in every partition, and of sparse rows.
std::shared_ptr<const sdk::RowBatch> DensePull() {
  std::vector<uint64_t> blocks(64);
  std::iota(blocks.begin(), blocks.end(), uint64_t{0});
  std::vector<PartitionId> order;
  for (uint32_t p = 0; p < sdk::kPartitions; ++p) order.push_back(PartitionId(p));
  const std::vector<sdk::TableKeys> tables = {{TableId(1), 2, blocks},
                                              {TableId(2), 1, blocks, /*dense=*/true}};
  const auto keys = std::make_shared<const sdk::KeySet>(sdk::MakeKeySet(blocks));
  return sdk::MakePull(tables, std::vector{keys, keys}, order);
}

/// A sender that has just sent a pull, a push and a pull of a dense tensor to each of two servers.
struct Sender {
  PartSender parts;
  SendRequests requests;
  TimePoint now{std::chrono::seconds(1)};

  Sender() {
    parts.SetMap(std::make_shared<PartitionMap>(sdk::MapOf(1, 1)), now);
    parts.AddPull(sdk::BatchOfAllPartitions(), now);
    parts.AddPush({.token = LeaseToken(MasterIncarnation(1), 1), .restore_epoch = RestoreEpoch(1)},
                  sdk::BatchOfAllPartitions(), now);
    parts.AddPull(DensePull(), now);
    requests = parts.Flush(now);
  }
};

/// What a LaneConnection does with the answer to one of its requests.
void TakeReply(const wire::Header& header, std::string_view directory, std::string_view values,
               Sender* sender) {
  if (header.request == 0 || header.request > sender->requests.size()) return;
  const SendRequest& request = sender->requests[header.request - 1];
  MUSTER_CHECK(request.id == sdk::RequestId(header.request));
  const auto reply = wire::DecodeReply(header, directory);
  if (!reply.ok()) return;
  uint64_t floats = 0;
  if (!sdk::net_internal::CheckReply(request, header, *reply, &floats).ok()) return;
  MUSTER_CHECK(floats * wire::BytesPerValue(header.encoding) == values.size());
  const std::shared_ptr<float[]> rows = std::make_shared<float[]>(floats);
  wire::DecodeValues(std::as_bytes(std::span(values)), header.encoding, {rows.get(), floats});
  sdk::ReceivedRows received{std::shared_ptr<const float[]>(rows)};
  received.versions = reply->versions;
  const PartSender::Outcome outcome =
      sender->parts.OnReply(request.id, reply->parts, received, sender->now);
  if (!outcome.finished.has_value() || request.push.has_value()) return;
  MUSTER_CHECK(sender->parts.Finished(*outcome.finished));
  sender->parts.TakePull(*outcome.finished);
  // Reads them: they must have been written.
  for (const sdk::RowOutput& output : request.batch->outputs) {
    if (output.rows == nullptr) continue;
    float sum = 0;
    for (size_t i = 0; i < output.keys->original.size(); ++i) sum += output.rows[i];
    (void)sum;
  }
}

}  // namespace

void FuzzWorkerFrames(std::string_view bytes) {
  FuzzInput input(bytes);
  Sender sender;
  while (input.rest().size() >= wire::kHeaderBytes) {
    const auto head = std::as_bytes(std::span(input.Bytes(wire::kHeaderBytes)));
    const auto header = wire::DecodeHeader(head.first<wire::kHeaderBytes>());
    if (!header.ok() || header->keys != 0) return;
    if (header->directory_bytes + header->value_bytes > input.rest().size()) return;
    const std::string_view directory = input.Bytes(header->directory_bytes);
    const std::string_view values = input.Bytes(header->value_bytes);
    if (header->kind == wire::Kind::kError) {
      (void)wire::DecodeError(directory);
    } else if (header->kind == wire::Kind::kHelloReply) {
      (void)wire::DecodeHelloReply(directory);
    } else {
      TakeReply(*header, directory, values, &sender);
    }
    sender.now += std::chrono::milliseconds(50);
    (void)sender.parts.Flush(sender.now);
  }
}

}  // namespace muster::testing
