#pragma once

/// The labels of a job's objects. Who makes objects, starts pods and looks for them shares the
/// names.
namespace muster::kubernetes {

/// Of every object: the job's name.
inline constexpr char kJobLabel[] = "muster/job";
/// Of pods: "master", "ps", "worker" or kExportRole.
inline constexpr char kRoleLabel[] = "muster/role";
/// Of the pod of `muster export`.
inline constexpr char kExportRole[] = "export";
/// Of servers and workers: the UID of the Job, the node's name, and which start of the node.
inline constexpr char kRunLabel[] = "muster/run";
inline constexpr char kNodeLabel[] = "muster/node";
inline constexpr char kStartLabel[] = "muster/start";
/// An annotation of the Job: FileDigestOf its job file and image.
inline constexpr char kFileAnnotation[] = "muster/job-file";

}  // namespace muster::kubernetes
