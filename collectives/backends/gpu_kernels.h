#pragma once

namespace muster::collectives::gpu {

/// The loops of gpu_loops.h as PTX, the text that CUDA's driver compiles for its GPU;
/// gpu_kernels.py has their names and parameters. The first parameter of each is the number of
/// elements.
extern const char* const kKernels;

}  // namespace muster::collectives::gpu
