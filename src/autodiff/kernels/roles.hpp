// Arguments by their names: which of them take part in a derivative.
#pragma once

#include "autodiff/kernels/activity.hpp"
#include "lockstep/differentiate.hpp"

namespace lockstep::gradients {

/// Throws InputError for unknown names, arguments that have no derivative, and where no input or no output is left.
Roles roles_of(const ir::Function& f, const Differentiation& which);

/// The storage of derivatives by an argument.
inline Storage wide_enough(Storage s) { return s == Storage::f64 ? Storage::f64 : Storage::f32; }
inline Storage wide_enough(Type t) { return t == Type::f64 ? Storage::f64 : Storage::f32; }

/// The ending of the names of tangents: _tangent; _tangent2 of a kernel that is one in forward mode, and so on.
std::string tangent_ending(const ir::Function& f);

/// The kernel's parameters and places on a kernel that is traced: its buffers and shapes are set by the caller.
void copy_frame(const ir::Function& from, ir::Function& to);

}  // namespace lockstep::gradients
