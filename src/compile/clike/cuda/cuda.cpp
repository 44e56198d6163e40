#include "compile/clike/cuda/cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "compile/clike/cuda/cuda_prelude.hpp"
#include "compile/clike/cuda/cuda_reduce.hpp"
#include "compile/clike/cuda/cuda_types.hpp"
#include "compile/clike/printer.hpp"
#include "lockstep/error.hpp"

namespace lockstep::clike {

using ir::Instruction;
using ir::Op;

namespace {

constexpr int64_t kStaticSharedLimit = 48 << 10;

std::string_view template_of(Op op) {
  static constexpr std::string_view kTemplates[] = {
#define LOCKSTEP_OP(name, arity, domain, result, meaning, cuda, ...) cuda,
#define LOCKSTEP_MATH(name, arity, cuda_fast, ...) cuda_fast,
#define LOCKSTEP_STRUCTURAL(name) "",
#include "lockstep/ir/ops.def"
  };
  return kTemplates[size_t(op)];
}

/// Bytes of the group_reduce scratch, 0 where the group is one warp or nothing is reduced.
int64_t reduce_bytes(const ir::Function& f) {
  int64_t bytes = 0;
  for (const ir::Block& block : f.blocks)
    for (ir::Id id : block)
      if (f[id].op == Op::group_reduce)
        bytes = std::max(bytes, reduce_scratch_bytes(f.group_lanes(), f[id].type));
  return bytes;
}

std::string identifier(std::string_view text) {
  std::string out = "kernel_";
  for (char c : text) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out;
}

class CudaPrinter final : public Printer {
 public:
  CudaPrinter(const ir::Function& f, const CudaOptions& options)
      : Printer(f), options_(options), group_(cuda_group(f)) {}

  CudaSource print() {
    const ir::Function& f = function();
    CudaSource source;
    source.block = source.covered = group_;
    source.entry = identifier(f.name);
    source.arguments = argument_layout(f);
    const int64_t shared = cuda_shared_bytes(f);
    const bool is_dynamic = shared > kStaticSharedLimit;
    (is_dynamic ? source.dynamic_shared_bytes : source.static_shared_bytes) = shared;

    std::string code;
    const auto head = [&](const std::string& entry) {
      return fmt::format("extern \"C\" __global__ void {}\n{}(const __grid_constant__ Arguments a) {{\n",
                         launch_bounds(), entry);
    };
    if (f.domain == ir::Domain::groups) {
      const std::string body = local_declarations() + print_body();
      code = head(source.entry) + shared_declarations(is_dynamic) + group_places() + body + "}\n";
    } else {
      code = print_points(source, head);
    }
    const std::string called = called_functions();
    std::string kernel = argument_struct(f, source.arguments) + "\n";
    for (const auto& [name, text] : functions_) kernel += text + "\n";
    kernel += called + code;

    source.text = fmt::format("// {}\n", f.name);
    source.text += used_helpers(cuda_helpers(options_.numerics, options_.arch), kernel) + "\n" + kernel;
    return source;
  }

 protected:
  std::string_view brackets() const override { return "{}"; }
  std::string type_name(Type type, int lanes) const override { return cuda_vector(type, lanes); }
  Expression literal(Type type, uint64_t bits) override { return cuda_literal(type, bits); }
  std::unique_ptr<Printer> printer_of(const ir::Function& f) const override {
    return std::make_unique<CudaPrinter>(f, options_);
  }
  std::string parameter(Type type, const std::string& name) const override {
    return fmt::format("{} {}", cuda_type(type), name);
  }
  std::string function_text(const std::string& name, const std::string& taken,
                            const std::string& given) override {
    return fmt::format("__device__ __noinline__ {} {}({}) {{  // {}\n{}}}\n\n", given, name, taken,
                       function().name, print_body());
  }

  std::string_view op_template(const Instruction& i, Type type) const override {
    const bool free =
        (i.flags & ir::kNoWrap) || !is_signed(type);  // plain operators wrap, or cannot overflow
    const auto constant = [&](int operand) -> const Instruction* {
      const Instruction& value = function()[i.args[size_t(operand)]];
      return value.op == Op::constant ? &value : nullptr;
    };
    const uint64_t ones = is_wide(type) ? ~uint64_t(0) : 0xffffffffu;
    switch (i.op) {
      case Op::iadd: return free ? "$0 + $1" : "ls_add($0, $1)";
      case Op::isub:
        if (const Instruction* c = constant(0); c && c->imm == 0) return "ls_neg($1)";
        return free ? "$0 - $1" : "ls_sub($0, $1)";
      case Op::imul:
        if (const Instruction* c = constant(1); c && c->imm == ones) return "ls_neg($0)";
        return free ? "$0 * $1" : "ls_mul($0, $1)";
      case Op::ineg: return "ls_neg($0)";
      case Op::imax:  // see ls_clamp_index
        for (int zero = 0; zero < 2 && type == Type::i32; ++zero)
          if (const Instruction* c = constant(zero); c && c->imm == 0)
            if (const Op other = function()[i.args[size_t(1 - zero)]].op;
                other == Op::imin || other == Op::imax)
              return zero == 0 ? "ls_relu($1)" : "ls_relu($0)";
        break;
      case Op::irem:
        if (const Instruction* c = constant(0);
            c && is_signed(type) && !is_wide(type) && std::abs(int64_t(int32_t(c->imm))) < (1 << 30))
          return "ls_irem_short($0, $1)";
        [[fallthrough]];
      case Op::idiv:
        if (const Instruction* c = constant(1); c && c->imm != 0 && (c->imm != ones || !is_signed(type)))
          return i.op == Op::idiv ? "$0 / $1" : "$0 % $1";
        break;
      case Op::shl:
      case Op::shr:
        if (const Instruction* c = constant(1);
            c && c->imm < (is_wide(type) ? 64u : 32u) && (i.op == Op::shr || !is_signed(type)))
          return i.op == Op::shl ? "$0 << $1" : "$0 >> $1";
        break;
      case Op::bnot:
        if (type == Type::boolean) return "!$0";
        break;
      case Op::fmin:
      case Op::fmax: return min_max_template(i, type);
      default: break;
    }
    return template_of(i.op);
  }

  Expression convert(Type to, Type from, const Expression& value) override {
    if (to == Type::boolean) return expand(from == Type::boolean ? "$0" : "$0 != 0", {&value, 1});
    if (is_float(from) && is_integer(to)) return call(fmt::format("ls_to_{}", name(to)), {&value});
    return call(cuda_type(to), {&value});
  }

  Expression bitcast(Type to, Type from, const Expression& value) override {
    if (is_integer(from) && is_integer(to)) return call(cuda_type(to), {&value});
    switch (to) {
      case Type::f32: return call(from == Type::i32 ? "__int_as_float" : "__uint_as_float", {&value});
      case Type::f64:
        return from == Type::i64 ? call("__longlong_as_double", {&value})
                                 : nested("__longlong_as_double", "i64", value);
      case Type::i32: return call("__float_as_int", {&value});
      case Type::u32: return call("__float_as_uint", {&value});
      case Type::i64: return call("__double_as_longlong", {&value});
      case Type::u64: return nested("u64", "__double_as_longlong", value);
      default: return value;
    }
  }

  Expression select(const Expression& condition, const Expression& yes, const Expression& no) override {
    return {fmt::format("{} ? {} : {}", tight(condition, Precedence::unary), tight(yes, Precedence::sum),
                        tight(no, Precedence::sum)),
            Precedence::loose, std::max({condition.depth, yes.depth, no.depth}) + 1};
  }
  Expression clamp_index(const Expression& c, const Expression& n) override {
    return call("ls_clamp_index", {&c, &n});
  }

  Expression coord(int axis) override {
    used_coord_[axis] = true;
    return {function().domain == ir::Domain::points ? std::string(1, "xyz"[axis])
                                                    : fmt::format("group_{}", "xyz"[axis])};
  }
  Expression extent(int axis) override { return {fmt::format("a.extent_{}", "xyz"[axis])}; }
  Expression local_id(int axis) override {
    used_local_[axis] = true;
    return {fmt::format("local_{}", "xyz"[axis])};
  }
  Expression lane() override {
    used_lane_ = true;
    return {"lane"};
  }
  Expression param(uint32_t scalar) override {
    if (function().domain == ir::Domain::values) return {fmt::format("p{}", scalar)};
    const ir::ScalarParam& p = function().scalars[scalar];
    return {p.type == Type::boolean ? fmt::format("bool(a.{})", p.name) : "a." + p.name};
  }
  Expression shape(uint32_t buffer, int axis) override {
    return {fmt::format("a.{}_n{}", function().buffers[buffer].name, axis)};
  }
  Expression stride(uint32_t buffer, int axis) override {
    return {fmt::format("a.{}_s{}", function().buffers[buffer].name, axis)};
  }

  Expression load(const Instruction& i, const Expression& index) override {
    const ir::BufferParam& buffer = function().buffers[i.imm];
    // __ldcs is assembly that the compiler does not order against stores: written buffers load plainly.
    const CachePath path = buffer.access != ir::Access::read ? CachePath::plain
                           : (i.flags & ir::kStreaming)      ? CachePath::streaming
                                                             : CachePath::read_only;
    const std::string pointer = pointer_text(buffer, index);
    if (i.lanes > 1) {
      const std::string name = load_function_name(buffer.storage, i.lanes, path);
      functions_.try_emplace(name, load_function(buffer.storage, i.lanes, path));
      return {fmt::format("{}({})", name, pointer), Precedence::atom, index.depth + 1};
    }
    const std::string element = path == CachePath::plain ? fmt::format("a.{}[{}]", buffer.name, index.text)
                                                         : read_through(path, pointer);
    return from_storage(buffer.storage, {element, Precedence::atom, index.depth});
  }

  void store(const Instruction& i, const Expression& index, std::span<const Expression> values) override {
    const ir::BufferParam& buffer = function().buffers[i.imm];
    const bool streaming = i.flags & ir::kStreaming;
    if (i.lanes > 1) {
      const std::string name = store_function_name(buffer.storage, i.lanes, streaming);
      functions_.try_emplace(name, store_function(buffer.storage, i.lanes, streaming));
      std::string text = fmt::format("{}({}", name, pointer_text(buffer, index));
      for (const Expression& value : values) text += ", " + value.text;
      return line(text + ");");
    }
    const Expression value = to_storage(buffer.storage, values[0]);
    if (streaming)
      line(fmt::format("__stcs({}, {});", pointer_text(buffer, index), value.text));
    else
      line(fmt::format("a.{}[{}] = {};", buffer.name, index.text, value.text));
  }

  Expression shared_load(const Instruction& i, const Expression& index) override {
    const ir::ArrayDecl& array = function().shared[i.imm];
    if (i.lanes == 1) return element(array, index);
    const std::string name = load_function_name(array.storage, i.lanes, CachePath::plain);
    functions_.try_emplace(name, load_function(array.storage, i.lanes, CachePath::plain));
    return {fmt::format("{}(&{}[{}])", name, array.name, index.text), Precedence::atom, index.depth + 1};
  }
  void shared_store(uint32_t array, const Expression& index, const Expression& value) override {
    line(fmt::format("{} = {};", element(function().shared[array], index).text, value.text));
  }
  Expression local_load(uint32_t array, const Expression& index) override {
    return element(function().locals[array], index);
  }
  void local_store(uint32_t array, const Expression& index, const Expression& value) override {
    line(fmt::format("{} = {};", element(function().locals[array], index).text, value.text));
  }

  Expression atomic(const Instruction& i, ir::AtomicTarget target, const Expression& index,
                    const Expression& value, const Expression* compare) override {
    static constexpr std::string_view kNames[] = {"atomicAdd", "atomicMin", "atomicMax",  "atomicAnd",
                                                  "atomicOr",  "atomicXor", "atomicExch", "atomicCAS"};
    const std::string place = target.shared
                                  ? fmt::format("&{}[{}]", function().shared[target.array].name, index.text)
                                  : pointer_text(function().buffers[target.array], index);
    // CUDA adds and exchanges 64-bit words as unsigned only; the bits are the same.
    const bool as_unsigned =
        i.type == Type::i64 && target.op != ir::AtomicOp::min && target.op != ir::AtomicOp::max;
    const auto word = [&](const Expression& e) {
      return as_unsigned ? fmt::format("u64({})", e.text) : e.text;
    };
    std::string text = fmt::format("{}({}", kNames[size_t(target.op)],
                                   as_unsigned ? fmt::format("reinterpret_cast<u64*>({})", place) : place);
    if (compare) text += ", " + word(*compare);
    text += ", " + word(value) + ")";
    return {as_unsigned ? fmt::format("i64({})", text) : text, Precedence::atom, 1};
  }

  void barrier() override { line("__syncthreads();"); }

  Expression group_reduce(const Instruction& i, const Expression& value) override {
    used_lane_ = true;
    const auto op = ir::Reduction(i.imm);
    const int lanes = function().group_lanes();
    const std::string name = reduce_function_name(op, i.type);
    functions_.try_emplace(name, reduce_function(op, i.type, lanes));
    const std::string scratch = reduce_scratch_bytes(lanes, i.type) > 0
                                    ? fmt::format(", reinterpret_cast<{}*>(ls_scratch)", cuda_type(i.type))
                                    : "";
    return {fmt::format("{}({}, lane{})", name, value.text, scratch), Precedence::atom, 1};
  }

  void async_copy(const Instruction& i, const Expression& shared_index, const Expression& offset) override {
    const ir::ArrayDecl& array = function().shared[i.imm >> 32];
    const ir::BufferParam& buffer = function().buffers[i.imm & 0xffffffffu];
    const int bytes = size_of(buffer.storage) * i.lanes;
    const bool hardware =
        options_.arch >= 80 && buffer.storage == array.storage && (bytes == 4 || bytes == 8 || bytes == 16);
    if (hardware)
      return line(fmt::format("ls_copy_async{}(&{}[{}], {});", bytes, array.name, shared_index.text,
                              pointer_text(buffer, offset)));
    for (int k = 0; k < i.lanes; ++k) {
      const auto shifted = [&](const Expression& e) {
        return k == 0 ? e.text : fmt::format("{} + {}", tight(e, Precedence::sum), k);
      };
      const Expression value =
          from_storage(buffer.storage, {fmt::format("a.{}[{}]", buffer.name, shifted(offset))});
      line(fmt::format("{}[{}] = {};", array.name, shifted(shared_index), value.text));
    }
  }
  void async_commit() override {
    if (options_.arch >= 80) line("ls_async_commit();");
  }
  void async_wait(int open) override {
    if (options_.arch >= 80) line(fmt::format("ls_async_wait<{}>();", open));
  }

  std::string declare(Type type, int lanes, std::string_view name, const Expression& value,
                      bool is_mutable) const override {
    return fmt::format("{}{} {} = {};", is_mutable ? "" : "const ", cuda_vector(type, lanes), name,
                       value.text);
  }
  void before_for(const Instruction& i, int64_t step) override {
    // See ls_neg: a bound can also be seen to be a negation after the compiler has folded constants.
    const auto known = [&](ir::Id id) { return function()[id].op == Op::constant; };
    if (step < 0 && !(known(i.args[0]) && known(i.args[1]))) line("#pragma unroll 1");
  }
  /// Passes are counted where the counter may step past the end of its type: loops that the compiler unrolls as others.
  std::string for_head(Type type, std::string_view name, const Expression& begin, const Expression& end,
                       int64_t step, bool oversteps) override {
    if (!oversteps) return Printer::for_head(type, name, begin, end, step, oversteps);
    const std::string k = fresh("k"), n = fresh("n"), own(cuda_type(type));
    const char* whole = is_wide(type) ? "u64" : "u32";
    const uint64_t size = step < 0 ? uint64_t(0) - uint64_t(step) : uint64_t(step);
    const Expression &low = step < 0 ? end : begin, &high = step < 0 ? begin : end;
    line(fmt::format("{0} {1} = 0, {2} = ls_passes<{0}>({3}({4}), {3}({5}), {6}u);", whole, k, n, own,
                     low.text, high.text, size));
    return fmt::format("for ({0} {1} = {2}; {3} < {4}; ++{3}, {1} = {0}({5}({1}) {6} {7}u)) {{", own, name,
                       begin.text, k, n, whole, step < 0 ? '-' : '+', size);
  }
  std::string loop_head() const override { return "for (;;) {"; }

 private:
  static Expression nested(std::string_view outer, std::string_view inner, const Expression& value) {
    const Expression e = call(inner, {&value});
    return call(outer, {&e});
  }
  static Expression element(const ir::ArrayDecl& array, const Expression& index) {
    return {fmt::format("{}[{}]", array.name, index.text), Precedence::atom, index.depth + 1};
  }
  static std::string pointer_text(const ir::BufferParam& buffer, const Expression& index) {
    return fmt::format("a.{} + {}", buffer.name, tight(index, Precedence::product));
  }

  /// One hardware instruction if one operand is a constant that is neither NaN nor zero. The result has the same
  /// bits as the comparison, except for the bits of a NaN.
  std::string_view min_max_template(const Instruction& i, Type type) const {
    const bool is_min = i.op == Op::fmin;
    if (type == Type::f32) {
      const auto decides = [&](ir::Id id) {
        const Instruction& value = function()[id];
        const uint32_t magnitude = uint32_t(value.imm) & 0x7fffffffu;
        return value.op == Op::constant && magnitude != 0 && magnitude <= 0x7f800000u;
      };
      if (decides(i.args[0])) return is_min ? "fminf($0, $1)" : "fmaxf($0, $1)";
      if (options_.arch >= 80 && decides(i.args[1]))
        return is_min ? "ls_min_nan($0, $1)" : "ls_max_nan($0, $1)";
    }
    return is_min ? "ls_fmin($0, $1)" : "ls_fmax($0, $1)";
  }

  std::string launch_bounds() const {
    const int threads = group_[0] * group_[1] * group_[2];
    return function().min_blocks > 0
               ? fmt::format("__launch_bounds__({}, {})", threads, function().min_blocks)
               : fmt::format("__launch_bounds__({})", threads);
  }

  std::string shared_declarations(bool is_dynamic) const {
    std::string out;
    int64_t at = 0;
    const auto declare_array = [&](std::string_view element, std::string_view name, int64_t count,
                                   int64_t bytes) {
      if (is_dynamic)
        out += fmt::format("  {}* const {} = reinterpret_cast<{}*>(ls_shared + {});\n", element, name,
                           element, at);
      else
        out += fmt::format("  __shared__ __align__(16) {} {}[{}];\n", element, name, count);
      at += (bytes + 15) / 16 * 16;
    };
    if (is_dynamic) out += "  extern __shared__ __align__(16) unsigned char ls_shared[];\n";
    for (const ir::ArrayDecl& array : function().shared)
      declare_array(cuda_element(array.storage), array.name, array.count,
                    array.count * size_of(array.storage));
    if (const int64_t bytes = reduce_bytes(function()))
      declare_array("unsigned char", "ls_scratch", bytes, bytes);
    return out;
  }

  std::string local_declarations() const {
    std::string out;
    for (const ir::ArrayDecl& array : function().locals)
      out += fmt::format("  {} {}[{}];\n", cuda_element(array.storage), array.name, array.count);
    return out;
  }

  /// The device function of one lane's work, for a body that this or another form of the function has.
  std::string point_function(std::string_view name, CudaPrinter& printer) {
    const std::string body = printer.print_body();
    functions_.merge(printer.functions_);
    return fmt::format("__device__ __forceinline__ void {}(const Arguments& a{}) {{\n{}{}}}\n\n", name,
                       point_parameters(function()), local_declarations(), body);
  }
  std::string point_function(std::string_view name, const ir::Function& form) {
    CudaPrinter printer(form, options_);
    return point_function(name, printer);
  }
  std::optional<compile::ColumnsForm> choose_points(PointsPlan& plan) const {
    plan = options_.points.value_or(clike::choose_points(function()));
    if (options_.points || !options_.columns) return {};
    std::optional<compile::ColumnsForm> form = compile::columns_form(function());
    const auto chosen = form ? choose_columns(function(), *form) : std::nullopt;
    if (!chosen) return {};
    plan = *chosen;
    return form;
  }

  /// `point` and, for stencils, `inner_point`; for columns `columns` and `inner_columns`; the kernels that call
  /// them for all points.
  template <class Head>
  std::string print_points(CudaSource& source, const Head& head) {
    const ir::Function& f = function();
    PointsPlan& plan = source.points;
    const std::optional<compile::ColumnsForm> form = choose_points(plan);
    source.covered[size_t(plan.axis)] *= plan.points;
    source.covered[0] *= plan.columns;

    std::string code = point_function("point", *this);
    Inside inside{compile::stencil_reach(f), {}};
    if (options_.inner_path.value_or(plan.axis > 0 || form) && inside.reach.complete)
      for (const StencilReach::Reach& r : inside.reach.reaches)
        inside.extents.push_back(extent_text(f[r.extent]));
    if (!inside.extents.empty()) code += point_function("inner_point", compile::inside_form(f));
    if (form) {
      code += point_function("columns", form->function);
      if (!inside.extents.empty()) {
        const ir::Function inner = compile::inside_form(f, {false, true, true});
        code += point_function("inner_columns", compile::columns_form(inner).value().function);
      }
      std::vector<std::string> extents;
      for (ir::Id id : form->extents) extents.push_back(extent_text(f[id]));
      code +=
          head(source.entry) + columns_kernel_body(f, group_, plan, inside, aligned(*form), extents) + "}\n";
    } else {
      code += head(source.entry) + points_kernel_body(f, group_, plan, inside) + "}\n";
    }
    if (plan.points * plan.columns > 1) {
      source.fine_entry = source.entry + "_fine";
      code += "\n" + head(source.fine_entry) + points_kernel_body(f, group_, {}, inside) + "}\n";
    }
    return code;
  }
  /// Whether all rows of a form begin at multiples of 16 bytes; of all lanes of a launch or of none.
  std::string aligned(const compile::ColumnsForm& form) const {
    std::string addresses, strides;
    for (uint32_t b : form.buffers)
      addresses += fmt::format("{}u64(a.{})", addresses.empty() ? "" : " | ", function().buffers[b].name);
    for (const auto& s : form.strides)
      strides +=
          fmt::format("{}a.{}_s{}", strides.empty() ? "" : " | ", function().buffers[s.buffer].name, s.axis);
    std::string text = fmt::format("({}) % 16u == 0u", addresses);
    if (!strides.empty()) text += fmt::format(" && (({}) & {}) == 0", strides, compile::kColumns - 1);
    return text;
  }
  std::string extent_text(const Instruction& i) {
    switch (i.op) {
      case Op::convert: return fmt::format("int({})", extent_text(function()[i.args[0]]));
      case Op::shape: return shape(uint32_t(i.imm / 8), int(i.imm % 8)).text;
      case Op::extent: return extent(int(i.imm)).text;
      default: return param(uint32_t(i.imm)).text;
    }
  }

  std::string group_places() const {
    std::string out;
    for (int axis = 0; axis < 3; ++axis) {
      const char c = "xyz"[axis];
      if (used_coord_[axis])
        out += fmt::format("  const int group_{} = a.offset_{} + int(blockIdx.{});\n", c, c, c);
      if (used_local_[axis]) out += fmt::format("  const int local_{} = int(threadIdx.{});\n", c, c);
    }
    if (used_lane_) {
      const auto& g = group_;
      out += g[1] == 1 && g[2] == 1 ? "  const int lane = int(threadIdx.x);\n"
             : g[2] == 1
                 ? fmt::format("  const int lane = int(threadIdx.x + {}u * threadIdx.y);\n", g[0])
                 : fmt::format(
                       "  const int lane = int(threadIdx.x + {}u * (threadIdx.y + {}u * threadIdx.z));\n",
                       g[0], g[1]);
    }
    return out;
  }

  const CudaOptions options_;
  const std::array<int32_t, 3> group_;
  bool used_coord_[3] = {}, used_local_[3] = {}, used_lane_ = false;
  std::map<std::string, std::string> functions_;  // of this kernel's own accesses and reductions
};

}  // namespace

std::array<int32_t, 3> cuda_group(const ir::Function& f) {
  if (f.group[0] > 0) {
    // Lanes along axes that a points kernel does not have would repeat its points.
    const auto along = [&](int axis) {
      return f.domain == ir::Domain::points && axis >= f.rank ? 1 : std::max(f.group[size_t(axis)], 1);
    };
    return {f.group[0], along(1), along(2)};
  }
  switch (f.rank) {
    case 1: return {256, 1, 1};
    case 2: return {64, 4, 1};
    default: return {32, 4, 2};
  }
}

int64_t cuda_shared_bytes(const ir::Function& f) {
  int64_t bytes = 0;
  const auto add = [&](int64_t n) { bytes += (n + 15) / 16 * 16; };
  for (const ir::ArrayDecl& array : f.shared) add(array.count * size_of(array.storage));
  add(reduce_bytes(f));
  return bytes;
}

CudaSource print_cuda(const ir::Function& lowered, const CudaOptions& options) {
  return CudaPrinter(lowered, options).print();
}

int parse_arch(std::string_view text) {
  std::string_view digits = text;
  for (std::string_view prefix : {"sm_", "compute_"})
    if (digits.starts_with(prefix)) digits.remove_prefix(prefix.size());
  int arch = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), arch);
  if (error != std::errc() || end != digits.data() + digits.size() || arch < 50 || arch > 300)
    throw InputError(fmt::format("architecture '{}'", text), "--arch", "a CUDA architecture such as sm_90");
  return arch;
}

}  // namespace lockstep::clike
