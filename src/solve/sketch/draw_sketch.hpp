// A solved sketch as a drawing.
#pragma once

#include "io/pictures/drawing.hpp"
#include "solve/sketch/solve_sketch.hpp"

namespace lockstep::solve::sketch {

/// y upwards: entities in one colour where the constraints determine them and in another where they may still
/// move, contradicting constraints in red, dimensions with their values, marks for the other relations.
io::Drawing draw_sketch(const SketchResult& result);

}  // namespace lockstep::solve::sketch
