// Kernels of a family, by their parameters.
#pragma once

#include <functional>
#include <string>

#include "core/memo.hpp"
#include "lockstep/kernel/kernel.hpp"

namespace lockstep {

/// The kernel of a key that names all that it is traced from: traced once in the process, by the rules of Memo, and
/// kept to its end, as devices keep its code. Families whose parameters are few numbers keep a Memo of their own.
Kernel cached_kernel(const std::string& key, const std::function<Kernel()>& make);

}  // namespace lockstep
