#pragma once

/// How tests steer the library fake_gpu: fake_gpu_set_fault(int) takes one of these, for the whole
/// process. fake_gpu_set_version(int) sets NCCL's version, and fake_gpu_communicators() counts
/// those that are not aborted to their end, fake_gpu_sums() the sums that were ever begun, and
/// fake_gpu_pinned() how often memory was pinned.
namespace muster::collectives::testing {

enum class FakeGpuFault : int {
  kNone = 0,
  kConnectFails = 1,
  kFailsLater = 2,  // the asynchronous state of every communicator is an error
  kSumHangs = 3,
  kAbortHangs = 4,
  kNoMemory = 5,
  kInvalidUsage = 6,  // of every communicator
  kLaunchFails = 7,
  kCapturing = 8,  // a stream of another thread is being captured into a graph
};

}  // namespace muster::collectives::testing
