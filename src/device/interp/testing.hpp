// Switches of the interpreter for tests.
#pragma once

namespace lockstep::device {
class Backend;
}

namespace lockstep::interp {

/// Makes later compilations run the whole pass pipeline, as the CPU has it, and columns where they can be, so that the passes themselves can
/// be compared with the plain meaning.
void run_all_passes(device::Backend& interp, bool all);

}  // namespace lockstep::interp
