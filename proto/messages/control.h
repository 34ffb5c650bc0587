#pragma once

/// The messages of the control plane as plain values: what the pure cores of master, servers and
/// workers exchange.
#include "proto/messages/group_control.h"
#include "proto/messages/server_control.h"
#include "proto/messages/worker_control.h"
