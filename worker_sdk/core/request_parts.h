#pragma once

#include "proto/wire/frame.h"
#include "worker_sdk/core/part_sender.h"

namespace muster::sdk {

/// The request's parts as they go over the wire, in the order of its items. Replaces what is in
/// `parts`, and uses its memory.
void WireParts(const SendRequest& request, wire::Parts* parts);
wire::PushIdentity WireIdentity(const PushIdentity& push);

}  // namespace muster::sdk
