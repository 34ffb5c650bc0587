#pragma once

#include <string>
#include <string_view>

namespace muster {

/// `text` in single quotes, as one word of a POSIX shell: 'it'\''s'. Pure.
std::string ShellQuoted(std::string_view text);

/// The same, but without quotes if a shell needs none. For lines that people read.
std::string ShellWord(std::string_view text);

}  // namespace muster
