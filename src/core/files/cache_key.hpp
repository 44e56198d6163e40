// A cache of generated code is trusted where nobody else can change its folders or knows its key.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/hash.hpp"

namespace lockstep {

/// Why others could put files of their own under this absolute name, naming the folder; empty where only this user and
/// root can. Each folder on the way counts, those that links lead through too; a folder such as /tmp, where all may
/// write but not rename, is no danger to what is in it.
std::string why_unsafe(const std::filesystem::path& folder);

/// Makes missing folders of this path, for this user alone whatever the umask is. Returns 0 or the error number.
int make_private_folder(const std::filesystem::path& folder);

/// The user's key for entries of the kernel cache, made at first use: $XDG_CONFIG_HOME/lockstep/cache.key, else
/// ~/.config/lockstep/cache.key, else `cache`/cache.key. Readable by this user alone; empty where there can be none.
std::optional<HashKey> cache_key(const std::filesystem::path& cache);

}  // namespace lockstep
