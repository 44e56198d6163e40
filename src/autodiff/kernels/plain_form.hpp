// Kernels in the form that reverse mode takes.
//
// Calls are inlined. Loops end at their head alone: break_, continue_ and return_ become flags, and what follows a
// statement that may jump is put under an if_ on its flag. Accesses of several elements are split. Buffers that are read
// and written at one offset become a variable, loaded at the start and stored at the end; since lanes do not race, no
// other lane touches the element. Hence loads see memory as it was before the launch, and a replay of any part gives what
// it gave before.
#pragma once

#include <array>
#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::gradients {

/// `traced` is a points kernel with the type of offsets open. Throws InputError, with the lines, for what it cannot bring
/// into this form.
ir::Function plain_form(const ir::Function& traced);

/// Position in a loop's body behind its head: the counter of a for_; the flag of a `loop` and the if_ with its break_.
size_t body_start(const ir::Function& f, const ir::Instruction& loop);

/// Coordinates of an element offset, slowest axis first, as the kernel language writes it; empty for other offsets.
std::vector<ir::Id> coordinates_of(const ir::Function& f, ir::Id offset, uint32_t buffer);
/// Whether an offset is that of the lane's own point.
bool is_own_point(const ir::Function& f, ir::Id offset, uint32_t buffer);
/// Whether no two lanes have this offset: the coordinates contain the point's, whole, at these axes of the buffer (one
/// bit of `axes` per axis of the buffer).
bool is_private(const ir::Function& f, ir::Id offset, uint32_t buffer, std::array<int, 3>& axes);

}  // namespace lockstep::gradients
