#pragma once

#include "master/core/ledger.h"
#include "proto/status/dataset_status.h"

namespace muster {

/// Adds the epochs of a dataset to its status, without their metrics: all, or at most 1,000, of
/// which none was thinned out. The others are summed up. `status` has its other fields.
void AddEpochs(const Ledger& ledger, DatasetId id, DatasetStatus* status);

}  // namespace muster
