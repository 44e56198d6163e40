// Studies of the losses of pde, as in `lockstep pde convergence` and `pde study`: convergence of the residuals of exact
// solutions with the cell size, and times for sizes, boundaries, kernels and orders.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/context.hpp"
#include "lockstep/pde.hpp"

namespace lockstep::pde {

/// Residual of an exact solution, in f64 on the periodic box (2 pi)^3. "wave": sigma = sin(x + y + z) advected by
/// u = (1, 1, 1). "vortices": the steady Taylor-Green vortices with their pressure.
struct ConvergencePoint {
  std::string field;
  int order = 0;        // of the differences: 2, 4, 6 or 8
  int64_t cells = 0;    // along each axis
  double residual = 0;  // root mean square
};
struct ConvergenceOptions {
  std::vector<int64_t> sizes{12, 16, 24, 32, 48, 64};  // cells along each axis, 10 to 512
  std::filesystem::path csv, plot;                     // the table, the plot (.svg, .png); empty: none
};
struct ConvergenceSlope {
  std::string field;
  int order = 0;
  double observed = 0;  // order of convergence between the last two sizes
};
struct ConvergenceResult {
  std::vector<ConvergencePoint> points;
  std::vector<ConvergenceSlope> slopes;
  std::filesystem::path csv, plot;  // as requested
};
/// Stage "pde.convergence". Throws InputError for sizes out of range.
ConvergenceResult run_convergence(Context& context, const ConvergenceOptions& options);

/// Measures all combinations of the lists, with random fields in f32 on cubes.
struct StudyOptions {
  std::vector<int64_t> sizes;  // cells along each axis, 4 to 1024; empty: chosen for the device
  std::vector<std::string> boundaries{"periodic", "clamp", "x=free_slip,y=dirichlet_face:1,z=no_slip"};
  std::vector<std::string> kernels{"two-kernel", "fused"};  // also two-sweep and trajectory (time per level)
  std::vector<int> orders{2};                               // 2, 4, 6 or 8
  std::vector<std::string> gradients{"all"};                // also t1, t1t2, none
  std::vector<std::string> tiles{
      ""};                    // LANESxLANESxROWS[xPLANES[xGROUPS[xLEVELS]]]; empty: chosen for the device
  bool flow = false;          // incompressible_flow() instead of transport()
  bool graph = false;         // time the replay of a recording
  int64_t iterations = 0;     // runs per row; 0: as many as take half a second, 5 to 50
  int64_t levels = 16;        // of a trajectory
  std::filesystem::path csv;  // the table; empty: none
};
struct StudyRow {
  std::string size, boundary, kernel, tile, gradients;
  int order = 2;
  std::vector<double> ms;  // of each run
  double bytes = 0;        // each datum counted once
  std::string skipped;     // reason why there are no times
  double mean_ms = 0, median_ms = 0, p95_ms = 0;
  double gbps = 0;                     // `bytes` per median time
  double share_of_copy = 0;            // gbps divided by StudyResult::copy_gbps
  double speedup_over_two_kernel = 0;  // 0: the study has no such row of the two-kernel path
};
struct StudyResult {
  std::string device;
  bool flow = false;     // the system that was measured
  double copy_gbps = 0;  // measured in the same run
  std::vector<StudyRow> rows;
  std::filesystem::path csv;  // as requested
};
/// Throws InputError for invalid names and numbers. Sizes that exceed the free memory are left out with a warning.
/// `progress` is called after each row.
StudyResult run_study(const Device& device, const StudyOptions& options,
                      const std::function<void(int64_t done, int64_t rows)>& progress = {});

/// Members of the program's JSON.
std::string to_json(const ConvergenceResult& result);
std::string to_json(const StudyResult& result);

}  // namespace lockstep::pde
