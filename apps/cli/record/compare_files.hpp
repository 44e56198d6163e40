// A result of one run against that of another.
#pragma once

#include <cstdint>
#include <filesystem>

namespace lockstep::cli {

struct FileComparison {
  bool same = true, within = true;
  int64_t differing_bits = 0;
  double max_abs = 0;  // NaN: not numbers
};

/// By content: what a file says of the run that wrote it, and members and columns that hold times, do not count. Arrays, and
/// numbers in texts, are within a bound that is the share `bound` of their largest magnitude; 0: of equal bits.
FileComparison compare_files(const std::filesystem::path& first, const std::filesystem::path& second,
                             double bound);

}  // namespace lockstep::cli
