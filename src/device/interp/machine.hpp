// State of a running kernel.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "device/interp/findings.hpp"
#include "device/interp/memory.hpp"
#include "device/interp/program.hpp"

namespace lockstep::interp {

/// State of a lane: `run` takes part, the others wait for the end of a pass, of a loop, of the kernel, of
/// a branch.
enum class LaneState : uint8_t { run, continued, broke, returned, waits };

struct BoundBuffer {
  uint8_t* data = nullptr;
  uint8_t* initialised = nullptr;
  AccessRecord* records = nullptr;  // null: nobody writes this memory in this dispatch
  uint64_t elements = 0;
  uint32_t record_first = 0;  // record of element 0
  uint32_t records_per_element = 1;
  std::array<int64_t, 4> shape{};
};

struct PendingCopy {
  const Code* code;
  uint32_t stage;
  int64_t shared_index, offset;
};

/// State that the lanes of one group share, and the lane that runs now.
struct Machine {
  const Program* program = nullptr;
  // The lane that runs.
  uint64_t* r = nullptr;       // its frame
  uint64_t* locals = nullptr;  // its local arrays
  uint32_t* local_stamps = nullptr;
  uint32_t pc = 0;
  LaneState state = LaneState::run;
  uint16_t lane = 0;
  // Its group. A point of a points kernel is a group of one lane.
  uint32_t group = 0;   // number within the dispatch
  uint32_t serial = 0;  // differs for each group and dispatch; never 0
  uint32_t epoch = 0;   // barriers passed
  uint32_t launch = 0;  // serial of the dispatch
  std::vector<BoundBuffer> buffers;
  std::vector<uint64_t> shared;
  std::vector<uint32_t> shared_stamps;
  std::vector<AccessRecord> shared_records;
  std::vector<std::vector<PendingCopy>> pending;     // by lane
  std::vector<uint32_t> stages;                      // closed, by lane
  std::array<int64_t, 3> position{};                 // of the point or group
  std::map<std::vector<uint64_t>, uint64_t> agreed;  // uniform() values by instruction and turns of its loops

  std::vector<Finding> found;
  void report(FindingKind kind, ir::Id source);
  std::string lane_text() const;

  void run(uint32_t begin, uint32_t end) {
    pc = begin;
    const Code* code = program->code.data();
    while (pc < end) {
      const Code& c = code[pc++];
      c.run(*this, c);
    }
  }
  /// Leaves the code of this lane.
  void leave(LaneState why) {
    state = why;
    pc = ~uint32_t(0);
  }
};

// Handlers by operation; null where there is none.
Handler elementary_handler(ir::Op op, Type type);
Handler convert_handler(Type from, Type to);
Handler memory_handler(const ir::Function& f, const ir::Instruction& i);
Handler loop_test_handler(Type counter, bool up);
Handler loop_step_handler(Type counter);
/// Value of `reduction` on two bits of `type`.
uint64_t combine(ir::Reduction reduction, Type type, uint64_t a, uint64_t b);
/// Performs the copies of this lane's stages before the last `open` closed ones.
void finish_copies(Machine& m, uint32_t open);

}  // namespace lockstep::interp
