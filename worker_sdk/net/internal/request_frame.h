#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/wire/frame.h"
#include "worker_sdk/core/part_sender.h"

namespace muster::sdk::net_internal {

/// One frame to write, as pieces of memory in order. The pieces point into the request's batch and
/// into this object, which must stay where it is.
struct RequestFrame {
  std::shared_ptr<const RowBatch> batch;
  wire::Parts parts;
  std::array<std::byte, wire::kHeaderBytes> header;
  std::string directory;
  std::vector<std::byte> encoded_values;  // only if the encoding is not float32
  std::vector<std::span<const std::byte>> pieces;
};

/// Builds the frame of `request` in `*frame`. It replaces the old contents and reuses their memory.
/// Adjacent keys and values become one piece.
void BuildFrame(const SendRequest& request, wire::Encoding encoding, wire::Checksum checksum,
                RequestFrame* frame);

/// The frame that opens a connection.
std::string HelloFrame(const wire::Hello& hello);

/// Checks an answer against its request: kind, parts, and the size of the values. On success
/// `*floats` is the number of values.
absl::Status CheckReply(const SendRequest& request, const wire::Header& header,
                        const wire::Reply& reply, uint64_t* floats);

}  // namespace muster::sdk::net_internal
