// Packed text files, as data sets are distributed.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::io {

/// The content of a gzip or bzip2 file, known by its first bytes; other bytes as they are. `where` names the file.
/// Throws InputError for damage and for what unpacks to more than text can.
std::string unpack_text(std::string bytes, std::string_view where);

}  // namespace lockstep::io
