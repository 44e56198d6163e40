// The kernel IR: an arena of instructions and a tree of blocks. Traced from C++ (kernel.hpp), rewritten by
// the passes of src/compile, printed as CUDA C++ and WGSL, lowered to LLVM, executed by the interpreter.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "lockstep/types.hpp"

namespace lockstep::ir {

enum class Op : uint8_t {
#define LOCKSTEP_OP(name, ...) name,
#define LOCKSTEP_MATH(name, ...) name,
#define LOCKSTEP_STRUCTURAL(name) name,
#include "lockstep/ir/ops.def"
  count_,
  none = count_
};
std::string_view name(Op op);

struct OpTypes {
  char domain, result;  // columns of ops.def; 0 for structural rows
};
constexpr OpTypes types_of(Op op) {
  constexpr char F = 'F', I = 'I', L = 'L', T = 'T', B = 'B';
  constexpr OpTypes kTable[] = {
#define LOCKSTEP_OP(name, arity, domain, result, ...) {domain, result},
#define LOCKSTEP_MATH(name, ...) {F, T},
#define LOCKSTEP_STRUCTURAL(name) {0, 0},
#include "lockstep/ir/ops.def"
      {0, 0}};
  return kTable[size_t(op)];
}
/// True if an elementary operation accepts operands of this type.
constexpr bool takes(Op op, Type type) {
  switch (types_of(op).domain) {
    case 'F': return is_float(type);
    case 'I': return is_integer(type);
    case 'L': return is_integer(type) || type == Type::boolean;
    default: return false;
  }
}
/// Type of the result of an elementary operation for operands of a type.
constexpr Type result_type(Op op, Type operand) {
  return types_of(op).result == 'B' ? Type::boolean : operand;
}
/// The operand types that an elementary operation accepts, for messages: "f32 or f64".
std::string_view operand_types(Op op);
/// Operands of an elementary operation (not structural): 1 to 3; 0 for structural ones.
int arity(Op op);
bool is_elementary(Op op);  // a row LOCKSTEP_OP
bool is_math(Op op);        // a row LOCKSTEP_MATH
/// True for operations without effects that do not depend on memory or variables. They may be moved, merged and removed.
bool is_pure(Op op);

using Id = uint32_t;
inline constexpr Id kNone = 0xffffffffu;
inline constexpr uint32_t kNoBlock = 0xffffffffu;

inline constexpr int kMostArgs = 8;
/// Largest number of nested levels of control flow, including calls.
inline constexpr int kDeepestFlow = 200;

enum Flag : uint8_t {
  kStreaming = 1,  // load, store: the datum is accessed once
  kNoWrap = 2,     // integer arithmetic that does not overflow
};

enum class Reduction : uint8_t { add, min, max };
enum class AtomicOp : uint8_t { add, min, max, and_, or_, xor_, exchange, compare_exchange };
struct AtomicTarget {
  AtomicOp op;
  bool shared;     // a shared array, else a buffer
  uint32_t array;  // its index
  uint64_t bits() const { return uint64_t(array) << 16 | uint64_t(shared) << 8 | uint64_t(op); }
  static AtomicTarget from_bits(uint64_t imm) {
    return {AtomicOp(imm & 0xff), ((imm >> 8) & 0xff) != 0, uint32_t(imm >> 16)};
  }
};

/// A line of an author's source: number of the file << 20 | line. 0: unknown.
using Place = uint32_t;
inline constexpr int kLineBits = 20;

struct Instruction {
  Op op;
  Type type = Type::none;  // of the result; none for effects
  uint8_t lanes = 1;       // components of a wide load, async copy or call
  uint8_t flags = 0;
  std::array<Id, kMostArgs> args = operands({});
  uint64_t imm = 0;
  std::array<uint32_t, 2> blocks{kNoBlock, kNoBlock};
  Place place = 0;  // approximate source line

  int arg_count() const {
    int n = 0;
    while (n < kMostArgs && args[n] != kNone) ++n;
    return n;
  }
  static constexpr std::array<Id, kMostArgs> operands(std::initializer_list<Id> ids) {
    std::array<Id, kMostArgs> all;
    all.fill(kNone);
    std::copy(ids.begin(), ids.end(), all.begin());
    return all;
  }
};

using Block = std::vector<Id>;

enum class Access : uint8_t { read, write, read_write };

struct BufferParam {
  std::string name;
  Storage storage;
  int rank;
  Access access;
  bool by_point = false;  // indexed by the domain's own point: its shape must cover the extent
  bool atomic = false;
  bool ruled =
      false;  // read by explicit coordinates with a boundary rule: may be empty, and reads then give 0
  int32_t reach = 0;  // largest shift of a point's coordinate towards the end of an axis
  int position = -1;  // among the arguments of a launch; -1: buffers and scalars bind in their own order
  Place place = 0;    // of the declaration
};
/// A requirement of launches on the shape of a buffer: its size along an axis (slowest first) is a given number, or that
/// of an axis of another buffer.
struct ShapeRule {
  uint32_t buffer;
  int axis;
  int64_t size;  // -1: that of `other`
  uint32_t other = 0;
  int other_axis = 0;
  Place place = 0;
};
struct ScalarParam {
  std::string name;
  Type type;
  Place place = 0;
};
/// A host struct that may be a parameter (kernel/structure.hpp), with its numbers, including those of nested structs and
/// arrays.
struct StructType {
  struct Field {
    std::string name;  // nested fields are joined by underscores: "wind_x", "weights_2"
    Type type;
    size_t offset;  // bytes
  };
  std::string name;
  const std::type_info* identity;
  std::vector<Field> fields;
};
/// One argument whose numbers are the scalars from `first` on.
struct StructParam {
  std::string name;
  const StructType* type;
  uint32_t first;
};
struct ArrayDecl {  // shared or local array
  std::string name;
  Storage storage;  // f32 f64 i32 u32 i64 u64
  int64_t count;
};

/// A check or a print_if of the author.
struct Report {
  std::string text;
  bool failure;  // of a check
  Type type;     // of the value that is shown; none: no value
  Place place;
};
/// The report buffer consists of the number of reports and kReportSlots records of kReportWords words: number of the
/// report; x, y, z of the point or group; lane; value (two words); one unused word.
inline constexpr int kReportSlots = 64, kReportWords = 8;

/// points, groups: the domain of a kernel. values: a function that kernels call. Its scalars are its parameters, and it
/// ends with `result`.
enum class Domain : uint8_t { points, groups, values };

/// A kernel, or a function that kernels call. blocks[0] is the body. Each instruction is in exactly one block. A value is
/// used after its definition, in its own block or in blocks nested there.
struct Function {
  std::string name;
  Domain domain = Domain::points;
  int rank = 1;  // axes of the domain, 1 to 3
  std::array<int32_t, 3>
      group{};             // lanes of a group along x, y, z; 0: the back end chooses (points kernels only)
  int32_t min_blocks = 0;  // requested resident groups per multiprocessor; 0: no request
  Type index_type = Type::i32;  // of element offsets; i64 if a buffer has 2^31 elements or more
  bool long_axes = false;  // axes may end within kLongAxis of 2^31: shifts and strides of loops can pass it
  std::vector<Instruction> instructions;
  std::vector<Block> blocks{Block{}};
  bool contract = true;  // a product with a sum as its only user is contracted into an fma
  std::vector<BufferParam> buffers;
  std::vector<ShapeRule> shapes;
  std::vector<ScalarParam> scalars;
  std::vector<StructParam> structs;  // in the order of their scalars
  std::vector<ArrayDecl> shared;
  std::vector<ArrayDecl> locals;
  std::vector<Report> reports;  // of check and print_if
  bool reporting = false;       // the last buffer is for the reports; the engine binds it, not an argument
  std::vector<Function> functions;  // that it calls
  std::vector<std::string> files;   // names of the files of places
  Place place = 0;                  // of the kernel

  /// Number of buffers among the arguments of a launch.
  size_t argument_buffers() const { return buffers.size() - (reporting ? 1 : 0); }
  /// Number of numbers and structs among the arguments of a launch.
  size_t argument_numbers() const;
  /// The struct that contains this scalar; null for a separate number.
  const StructParam* struct_at(size_t scalar) const;
  const Instruction& operator[](Id id) const { return instructions[id]; }
  Instruction& operator[](Id id) { return instructions[id]; }
  int group_lanes() const { return group[0] * group[1] * group[2]; }
  bool has_barriers() const;
  bool uses(Type type) const;
};

/// A counter can exceed the end of an axis by this much without overflow if the axis ends at least this far below 2^31.
inline constexpr int64_t kLongAxis = int64_t(1) << 20;

/// Nested levels of control flow in a block, including those of the functions called there.
int depth_of(const Function& function, uint32_t block = 0);
/// False if the counter of a for_ cannot come within a step of the end of its type: the step is 1 or -1, or the bound is
/// known.
bool may_overstep(const Function& function, const Instruction& loop);

/// The `result` that ends a verified function of values.
const Instruction& result_of(const Function& function);

/// Readable text of a function; the same text for the same function.
std::string print(const Function& function);
/// One instruction as in print(), for messages.
std::string print(const Function& function, Id id);

/// "life.cpp:23", or empty if unknown.
std::string place_text(const Function& function, Place place);
/// "kernel life, near life.cpp:23" for messages.
std::string where_of(const Function& function, Place place);

/// Throws InputError for an error of the author, such as a barrier in divergent control flow, a value used outside its
/// block, a break outside a loop or operands of different types. Throws InternalError for an invalid result of a pass.
/// Both name the kernel and the place.
void verify(const Function& function);

/// 128-bit content hash of the printed form, as 32 hexadecimal digits.
std::string fingerprint(const Function& function);

}  // namespace lockstep::ir
