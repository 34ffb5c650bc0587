#pragma once

#include <string>

namespace muster::job_file {

/// `path` relative to `base_directory`, in normal form, without a slash at its end.
std::string Absolute(const std::string& base_directory, const std::string& path);

/// A glob pattern that matches only this folder.
std::string EscapeGlob(const std::string& folder);

}  // namespace muster::job_file
