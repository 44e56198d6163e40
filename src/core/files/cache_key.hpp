// A cache of generated code is trusted where nobody else can change its folders or knows its key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/hash.hpp"

namespace lockstep {

/// Why others could put files of their own under this absolute name, naming the folder; empty where only this user and
/// root can. Each folder on the way counts, those that links lead through too; a folder such as /tmp, where all may
/// write but not rename, is no danger to what is in it.
std::string why_unsafe(const std::filesystem::path& folder);

/// Makes missing folders of this path, for this user alone regardless of the umask. Returns 0 or the error number.
int make_private_folder(const std::filesystem::path& folder);

/// The content of a file that only this user can have written, up to `most` bytes. None where there is no file; none and `why`,
/// a sentence, where it is no regular file of this user alone, is larger or cannot be read.
std::optional<std::string> read_private_file(const std::filesystem::path& file, uint64_t most,
                                             std::string& why);

/// Writes a file that read_private_file() takes, for this user alone; missing folders are made. Throws InputError.
void write_private_file(const std::filesystem::path& file, std::string_view text);

/// The user's key for entries of the kernel cache, made at first use: $XDG_CONFIG_HOME/lockstep/cache.key, else
/// ~/.config/lockstep/cache.key, else `cache`/cache.key. Readable by this user alone; empty where there can be none.
std::optional<HashKey> cache_key(const std::filesystem::path& cache);

}  // namespace lockstep
