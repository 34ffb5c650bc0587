#pragma once

#include <string_view>

/// The fuzz targets. Each takes any bytes, ends without a crash, a hang or memory out of
/// proportion, and checks what must hold of what was accepted with MUSTER_CHECK. Deterministic;
/// they keep nothing between two calls.
namespace muster::testing {

/// A stream of frames as a worker sends them, into a lane with two partitions of two tables.
void FuzzServerFrames(std::string_view input);
/// A stream of frames as a server answers a pull and a push of the SDK.
void FuzzWorkerFrames(std::string_view input);
/// The text of a job file.
void FuzzJobFile(std::string_view input);
/// A source file: its index, cut at arbitrary places, and the records of each of its shards.
void FuzzLines(std::string_view input);
/// Entries of a snapshot file, and the partition that is restored from them.
void FuzzSnapshotImage(std::string_view input);
/// Keys and values of the journal.
void FuzzJournalRecords(std::string_view input);
/// Calls of workers and servers to the master: a stream of messages into a MasterCore.
void FuzzMasterRequests(std::string_view input);
/// The master's answers as the SDK reads them.
void FuzzMasterAnswers(std::string_view input);
/// A `.npy` file of an export that a table starts from.
void FuzzNpy(std::string_view input);
/// A request to the REST interface, behind its HTTP parser.
void FuzzRestRequests(std::string_view input);
/// Lines of what a scaler keeps on disk: its events, and the history of the job.
void FuzzScalerFiles(std::string_view input);
/// What a Kubernetes API server answers, a kubeconfig, or what a credential plugin prints.
void FuzzKubernetesAnswers(std::string_view input);
/// A stream of frames between members of a group: messages, and chunks of buckets that are summed.
void FuzzGroupFrames(std::string_view input);

}  // namespace muster::testing
