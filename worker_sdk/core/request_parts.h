#pragma once

#include "proto/wire/frame.h"
#include "worker_sdk/core/part_sender.h"

namespace muster::sdk {

/// The request's parts as they go over the wire, in the order of its items.
wire::Parts WireParts(const SendRequest& request);
wire::PushIdentity WireIdentity(const PushIdentity& push);

}  // namespace muster::sdk
