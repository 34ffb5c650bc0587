#pragma once

/// The messages of the control plane as plain values: what the pure cores of master, servers and
/// workers exchange.
#include "sharding/server_control.h"
#include "sharding/worker_control.h"
