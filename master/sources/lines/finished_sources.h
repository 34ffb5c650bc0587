#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "master/sources/lines/file_stamps.h"
#include "master/sources/lines/index_file.h"
#include "master/sources/lines/indexer.h"

/// The files of a dataset that a scan has finished, kept on disk while it goes on with others: a
/// scan of hours that is cut off continues there. Two files: an index, and the stamps that its
/// sources had before they were read.
namespace muster {

/// `path` is that of the dataset's index, which these files lie beside. `stamps` are those of the
/// sources, in order, before they were read.
absl::Status WriteFinished(const std::string& path, const IndexParameters& parameters,
                           const std::vector<SourceIndex>& sources,
                           std::span<const FileStamp> stamps);
/// By path, those of `files` that were finished with these parameters and have the same stamp now
/// (`stamps`, one for each). Empty if there are none, or if what was kept is damaged.
std::map<std::string, SourceIndex> ReadFinished(const std::string& path,
                                                const IndexParameters& parameters,
                                                std::span<const std::string> files,
                                                std::span<const FileStamp> stamps);
void RemoveFinished(const std::string& path);

}  // namespace muster
