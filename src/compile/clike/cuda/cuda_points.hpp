// How a points kernel covers its domain: several points per lane where a lane would else hold too few bytes
// in flight, and a path without clamps for lanes whose stencil lies inside.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/clike/points_plan.hpp"
#include "compile/passes/forms/columns.hpp"
#include "compile/passes/forms/stencil.hpp"
#include "lockstep/ir/function.hpp"

namespace lockstep::clike {

using compile::StencilReach;

/// Whether columns by 16-byte accesses pay, and the points of a lane then. They pay if lanes read a row at several
/// places, there are no more single loads than rows (a warp's single load touches as many lines as that of a row), the
/// form has at most half of the accesses, and its rows fit into registers.
std::optional<PointsPlan> choose_columns(const ir::Function& function, const compile::ColumnsForm& form);

/// Lanes whose stencils lie inside: the reach, and per reach the text of its extent. Empty: there is no
/// form for them.
struct Inside {
  StencilReach reach;
  std::vector<std::string> extents;
};

/// Bodies of the kernels: coordinates, guards and calls of `point`, and of `inner_point` where there is one.
std::string points_kernel_body(const ir::Function& function, const std::array<int32_t, 3>& block,
                               const PointsPlan& plan, const Inside& inside);
/// The same for columns: calls of `columns` and `inner_columns`, of `point` and `inner_point` where the form does not
/// hold. `aligned` is the condition that all lanes find alike, `extents` are those of the form.
std::string columns_kernel_body(const ir::Function& function, const std::array<int32_t, 3>& block,
                                const PointsPlan& plan, const Inside& inside, const std::string& aligned,
                                const std::vector<std::string>& extents);
/// Parameters and arguments of `point`: "const int x, const int y" and "x, y".
std::string point_parameters(const ir::Function& function);

}  // namespace lockstep::clike
