// Options and data that the pde commands share.
#pragma once

#include <string>
#include <vector>

#include "io/arrays/npy.hpp"
#include "lockstep/pde.hpp"
#include "options.hpp"

namespace lockstep::cli {

/// Options of the loss, as typed.
struct PdeOptions {
  std::string input, spacing, boundary = "periodic", weights = "1,1", terms = "all", kernel = "auto", out;
  std::string order = "2", gradients = "all";
  double dt = 0;
};

void add_pde_options(CLI::App& app, PdeOptions& options);

/// Numbers between commas; `count` of them. Throws InputError.
std::vector<double> parse_numbers(const std::string& text, const std::string& option, size_t count);
pde::TransportOptions parse_terms(const PdeOptions& options);
/// The mesh but for its cells.
pde::Mesh parse_mesh(const PdeOptions& options);
pde::Gradients parse_gradients(const std::string& text);
pde::Path parse_path(const std::string& text);

/// An array of the file: f4 or f8, `leading` axes of the given sizes, then three axes of cells. Throws
/// InputError.
const io::NpyArray& field_array(const io::NpzArrays& file, const std::string& name,
                                const std::vector<int64_t>& leading, const std::string& where);
/// Cells x, y, z from the last three axes.
std::array<int64_t, 3> cells_of(const io::NpyArray& array);
/// Throws InputError where shape or type differ from the first array's.
void expect_like(const io::NpyArray& array, const std::string& name, const io::NpyArray& first,
                 const std::string& first_name, const std::string& where);

}  // namespace lockstep::cli
