#pragma once

/// The labels of a job's objects. All programs that make objects, start pods or look for them use
/// these names.
namespace muster::kubernetes {

/// On every object: the job's name.
inline constexpr char kJobLabel[] = "muster/job";
/// On pods: "master", "ps", "worker" or kExportRole.
inline constexpr char kRoleLabel[] = "muster/role";
/// On the pod of `muster export`.
inline constexpr char kExportRole[] = "export";
/// On servers and workers: the UID of the Job, the node's name, and the number of the node's start.
inline constexpr char kRunLabel[] = "muster/run";
inline constexpr char kNodeLabel[] = "muster/node";
inline constexpr char kStartLabel[] = "muster/start";
/// An annotation on the Job: FileDigestOf its job file and image.
inline constexpr char kFileAnnotation[] = "muster/job-file";

}  // namespace muster::kubernetes
