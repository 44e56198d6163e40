// Checks of output files, made before the work and not after it.
#pragma once

#include <filesystem>

namespace lockstep {

/// From now on no AtomicPath writes over this file. For programs, before their threads start.
void keep_whole(std::filesystem::path input);
void keep_nothing();  ///< ends that for all

/// Throws InputError where a file of this name cannot be written: a folder, one of keep_whole(), a parent that is no
/// folder or may not be written. Makes nothing.
void check_output_file(const std::filesystem::path& file);
/// The same for a folder that is made where it is missing.
void check_output_folder(const std::filesystem::path& folder);

/// Whether it is there and a folder; a page has none.
bool is_folder(const std::filesystem::path& path);

}  // namespace lockstep
