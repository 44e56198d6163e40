// Bundle adjustment problems in the text format of "Bundle Adjustment in the Large" (Agarwal et al. 2010).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "io/text/input_memory.hpp"

namespace lockstep::io {

/// Cameras, points and the pixels where cameras saw points.
struct BalProblem {
  std::vector<double> cameras;       // (n, 9): rotation vector, translation, focal length (px), k1, k2
  std::vector<double> points;        // (n, 3)
  std::vector<int32_t> indices;      // (m, 2): camera, point
  std::vector<double> observations;  // (m, 2): x right, y up from the image's centre, px
  std::vector<int64_t> lines;        // (m) of the text, from 1; empty for problems that are made
  InputClaim claim = {};

  int64_t camera_count() const { return int64_t(cameras.size()) / 9; }
  int64_t point_count() const { return int64_t(points.size()) / 3; }
  int64_t observation_count() const { return int64_t(indices.size()) / 2; }
};

/// Throws InputError that names file and line: counts that the file cannot hold, indices outside them,
/// numbers that are not finite, numbers that are missing or left over.
BalProblem parse_bal(std::string_view text, std::string_view where);
/// The file may be packed by gzip or bzip2.
BalProblem read_bal(const std::filesystem::path& path);
/// Numbers keep all their digits. Appears whole or not at all.
void write_bal(const std::filesystem::path& path, const BalProblem& problem);

}  // namespace lockstep::io
