#pragma once

#include <string>

namespace muster::job_file {

/// `path` as seen from `base_directory`, normal form, without a slash at its end.
std::string Absolute(const std::string& base_directory, const std::string& path);

/// The folder as a glob pattern that matches just itself.
std::string EscapeGlob(const std::string& folder);

}  // namespace muster::job_file
