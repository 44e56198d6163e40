// Four neighbouring columns a lane, by accesses of four elements: a points kernel becomes one whose coordinate x is the
// first of four columns.
//
// An element offset is a sum; where one term is x with a constant offset (plain, clamped or periodic) and the others do
// not have x, the others name a row. A row of which the four columns together read all of x … x + 3 is loaded once,
// and the elements next to it by one load each, with the boundary rule. Each column keeps its own operations in
// their order, so that no bit changes. Holds where the whole four columns are in the domain and in every extent of
// `extents`, and rows begin at multiples of four elements (`strides`, `buffers`): the target requests it and has
// the kernel itself for the rest. Buffers that are written must not be read, and the body has no branches. Runs
// after the other passes, because it needs equal values to be one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

inline constexpr int kColumns = 4;

struct ColumnsForm {
  ir::Function function;          // coord 0: the first of the columns, a multiple of 4
  std::vector<ir::Id> extents;    // of the kernel given: x + 3 must be less
  std::vector<uint32_t> buffers;  // whose addresses must be multiples of 16 bytes
  struct Stride {
    uint32_t buffer;
    int axis;
  };
  std::vector<Stride> strides;  // that must be multiples of 4
  int accesses_of_points = 0;   // loads and stores of four points of the kernel given
  int loads_of_rows = 0;        // of a point of the kernel given, from rows that the form loads whole
  int rows = 0, sides = 0;      // loads of the form: of four elements, of one
  int stores = 0;               // of the form
};
/// Nothing where the form is not sound or no row would be loaded whole.
std::optional<ColumnsForm> columns_form(const ir::Function& lowered);

/// The same kernel with one lane a point: of four columns for which the form holds the first one does all. For devices
/// that dispatch points, and to compare the form with the kernel.
ir::Function columns_by_points(const ir::Function& lowered, const ColumnsForm& form);

}  // namespace lockstep::compile
