#include "compile/clike/wgsl/wgsl.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "compile/clike/cuda/cuda_points.hpp"
#include "compile/clike/printer.hpp"
#include "compile/clike/wgsl/wgsl_buffers.hpp"
#include "compile/clike/wgsl/wgsl_fixed.hpp"
#include "compile/clike/wgsl/wgsl_prelude.hpp"
#include "compile/lower.hpp"
#include "lockstep/error.hpp"

namespace lockstep::clike {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {

constexpr std::string_view kAxes = "xyz";

std::string_view wgsl_column(Op op) {
  switch (op) {
#define LOCKSTEP_OP(name, arity, domain, result, meaning, cuda, wgsl, ...) \
  case Op::name: return wgsl;
#define LOCKSTEP_MATH(name, arity, cuda_fast, wgsl_fast, ...) \
  case Op::name: return wgsl_fast;
#include "lockstep/ir/ops.def"
    default: return "";
  }
}

class WgslPrinter final : public Printer {
 public:
  /// `words`: of the kernel, for functions that it calls.
  WgslPrinter(const ir::Function& f, const WgslOptions& options, std::vector<WgslWord>* words = nullptr)
      : Printer(f), options_(options), words_(words ? *words : own_words_) {
    exact_ = options.numerics == Numerics::exact;
    plan_ = wgsl_points(f);
    if (exact_ && options.fixed_arithmetic) fixed_ = values_to_fix(f);
    atomic_shared_.resize(f.shared.size());
    has_loops_ = loops(f);
    for (const Instruction& i : f.instructions)
      if (i.op == Op::atomic)
        if (const auto target = ir::AtomicTarget::from_bits(i.imm); target.shared)
          atomic_shared_[target.array] = true;
    for (uint32_t b = 0; b < f.buffers.size(); ++b) {
      const WgslBuffer how = b < options.buffers.size() ? options.buffers[b] : WgslBuffer{};
      has_base_.push_back(how.has_base);
      buffers_.emplace_back(f, b, how, options.window_bytes);
      writes_buffers_ |= f.buffers[b].access != ir::Access::read;
    }
  }

  WgslSource print();

 private:
  std::string main_head(const std::array<int32_t, 3>& group) const {
    return fmt::format("@compute @workgroup_size({}, {}, {})\nfn main({}) {{\n", group[0], group[1], group[2],
                       fmt::join(builtins_, ", "));
  }
  std::string main_text(const std::string& body);
  std::string points_text(const std::array<int32_t, 3>& group, const std::string& body, std::string& point);
  static bool loops(const ir::Function& f) {
    for (const ir::Function& called : f.functions)
      if (loops(called)) return true;
    for (const ir::Block& block : f.blocks)
      for (Id id : block)
        if (f[id].op == Op::for_ || f[id].op == Op::loop) return true;
    return false;
  }
  std::unique_ptr<Printer> printer_of(const ir::Function& f) const override {
    return std::make_unique<WgslPrinter>(f, options_, &words_);
  }
  std::string parameter(Type type, const std::string& name) const override {
    return fmt::format("{}: {}", name, wgsl_type(type));
  }
  std::string function_text(const std::string& name, const std::string& taken,
                            const std::string& given) override {
    const std::string body = print_body();
    return fmt::format("fn {}({}) -> {} {{  // {}\n{}{}}}\n", name, taken, given, function().name, prologue_,
                       body);
  }
  std::string_view brackets() const override { return "()"; }
  // ── words of the argument block
  // ───────────────────────────────────────────────────────────────────────────────────
  std::string word(WgslWord w) {
    auto at = std::find(words_.begin(), words_.end(), w);
    if (at == words_.end()) at = words_.insert(words_.end(), w);
    const size_t n = size_t(at - words_.begin());
    return fmt::format("A[{}].{}", n / 4, "xyzw"[n % 4]);
  }
  std::string signed_word(WgslWord w) { return fmt::format("i32({})", word(w)); }
  /// A `let` at the begin of main.
  Expression named(const std::string& name, const std::string& text) {
    if (names_.insert(name).second) prologue_ += fmt::format("  let {} = {};\n", name, text);
    return {name, Precedence::atom, 0};
  }
  std::string builtin(std::string_view name, std::string_view type) {
    const std::string declaration = fmt::format("@builtin({0}) {0}: {1}", name, type);
    if (std::find(builtins_.begin(), builtins_.end(), declaration) == builtins_.end())
      builtins_.push_back(declaration);
    return std::string(name);
  }

  // ── the language
  // ──────────────────────────────────────────────────────────────────────────────────────────────────
  std::string type_name(Type type, int lanes) const override {
    return lanes == 1 ? std::string(wgsl_type(type)) : fmt::format("vec{}<{}>", lanes, wgsl_type(type));
  }
  Expression literal(Type type, uint64_t bits) override;
  std::string_view op_template(const Instruction& instruction, Type type) const override;
  Expression elementary(const Instruction& instruction, Type type,
                        std::span<const Expression> operands) override;
  Expression convert(Type to, Type from, const Expression& value) override;
  Expression bitcast(Type to, Type, const Expression& value) override {
    return {fmt::format("bitcast<{}>({})", wgsl_type(to), value.text), Precedence::atom, value.depth + 1};
  }
  Expression select(const Expression& condition, const Expression& yes, const Expression& no) override {
    return call("select", {&no, &yes, &condition});
  }
  Expression clamp_index(const Expression& coordinate, const Expression& extent) override {
    return {fmt::format("max(min({}, {} - 1i), 0i)", coordinate.text, extent.text), Precedence::atom,
            coordinate.depth + 2};
  }

  Expression coord(int axis) override {
    const std::string name = fmt::format("at_{}", kAxes[size_t(axis)]);
    if (plan_.points > 1) return {name};  // a parameter of `point`
    return named(name, coordinate(axis));
  }
  /// Text of a lane's first point, or of its group.
  std::string coordinate(int axis) {
    const char letter = kAxes[size_t(axis)];
    const std::string offset = signed_word({WgslWord::Kind::offset, 0, uint8_t(axis)});
    std::string id =
        fmt::format("{}.{}",
                    builtin(function().domain == ir::Domain::points ? "global_invocation_id" : "workgroup_id",
                            "vec3<u32>"),
                    letter);
    if (plan_.points > 1 && axis == plan_.axis)
      id = axis > 0 ? fmt::format("{} * {}u", id, plan_.points)
                    : fmt::format("{}.x * {}u + {}.x", builtin("workgroup_id", "vec3<u32>"),
                                  wgsl_group(function(), options_.group_lanes)[0] * plan_.points,
                                  builtin("local_invocation_id", "vec3<u32>"));
    // A domain of one axis continues along y, row after row of groups.
    if (function().rank == 1)
      id += fmt::format(" + {}.y * {}", builtin("workgroup_id", "vec3<u32>"), word({WgslWord::Kind::row}));
    return fmt::format("{} + i32({})", offset, id);
  }
  Expression extent(int axis) override {
    return named(fmt::format("extent_{}", kAxes[size_t(axis)]),
                 signed_word({WgslWord::Kind::extent, 0, uint8_t(axis)}));
  }
  Expression local_id(int axis) override {
    return named(fmt::format("local_{}", kAxes[size_t(axis)]),
                 fmt::format("i32({}.{})", builtin("local_invocation_id", "vec3<u32>"), kAxes[size_t(axis)]));
  }
  Expression lane() override {
    return named("lane", fmt::format("i32({})", builtin("local_invocation_index", "u32")));
  }
  Expression param(uint32_t scalar) override {
    if (function().domain == ir::Domain::values) return {fmt::format("p{}", scalar)};
    const std::string text = word({WgslWord::Kind::scalar, scalar, 0}), name = fmt::format("p{}", scalar);
    switch (function().scalars[scalar].type) {
      case Type::boolean: return named(name, text + " != 0u");
      case Type::u32: return named(name, text);
      default:
        return named(name, fmt::format("bitcast<{}>({})", wgsl_type(function().scalars[scalar].type), text));
    }
  }
  Expression shape(uint32_t buffer, int axis) override {
    return named(fmt::format("b{}_n{}", buffer, axis),
                 signed_word({WgslWord::Kind::shape, buffer, uint8_t(axis)}));
  }
  Expression stride(uint32_t buffer, int axis) override {
    return named(fmt::format("b{}_s{}", buffer, axis),
                 signed_word({WgslWord::Kind::stride, buffer, uint8_t(axis)}));
  }

  Expression load(const Instruction& i, const Expression& index) override;
  void store(const Instruction& i, const Expression& index, std::span<const Expression> values) override;
  Expression shared_load(const Instruction& i, const Expression& index) override {
    const auto array = uint32_t(i.imm);
    const auto element = [&](const std::string& at) {
      const std::string place = fmt::format("s{}[{}]", array, at);
      return !atomic_shared_[array] ? place
             : shared_bits(array)   ? fmt::format("bitcast<f32>(atomicLoad(&{}))", place)
                                    : fmt::format("atomicLoad(&{})", place);
    };
    std::string text = element(index.text);
    if (i.lanes > 1) {
      text = type_name(i.type, i.lanes) + "(";
      for (int k = 0; k < i.lanes; ++k)
        text += (k ? ", " : "") + element(fmt::format("{} + {}", tight(index, Precedence::sum), k));
      text += ")";
    }
    return {text, Precedence::atom, index.depth + 1};
  }
  void shared_store(uint32_t array, const Expression& index, const Expression& value) override {
    line(fmt::format(fmt::runtime(shared_bits(array)      ? "atomicStore(&s{}[{}], bitcast<u32>({}));"
                                  : atomic_shared_[array] ? "atomicStore(&s{}[{}], {});"
                                                          : "s{}[{}] = {};"),
                     array, index.text, value.text));
  }
  /// Floats that are added to atomically lie as bits.
  bool shared_bits(uint32_t array) const {
    return atomic_shared_[array] && function().shared[array].storage == Storage::f32;
  }
  Expression local_load(uint32_t array, const Expression& index) override {
    return {fmt::format("l{}[{}]", array, index.text), Precedence::atom, index.depth + 1};
  }
  void local_store(uint32_t array, const Expression& index, const Expression& value) override {
    line(fmt::format("l{}[{}] = {};", array, index.text, value.text));
  }
  Expression atomic(const Instruction& i, ir::AtomicTarget target, const Expression& index,
                    const Expression& value, const Expression* compare) override;
  void barrier() override {
    line("workgroupBarrier();");
    if (writes_buffers_) line("storageBarrier();");
  }
  Expression group_reduce(const Instruction& i, const Expression& value) override;
  void async_copy(const Instruction& i, const Expression& shared_index, const Expression& offset) override;
  void async_commit() override {}
  void async_wait(int) override {}

  std::string declare(Type type, int lanes, std::string_view name, const Expression& value,
                      bool is_mutable) const override {
    return fmt::format("{} {}: {} = {};", is_mutable ? "var" : "let", name, type_name(type, lanes),
                       value.text);
  }
  std::string for_head(Type type, std::string_view name, const Expression& begin, const Expression& end,
                       int64_t step, bool oversteps) override {
    const char suffix = type == Type::u32 ? 'u' : 'i';
    const std::string advance = oversteps    ? saturating(type, name, step)
                                : step == 1  ? fmt::format("{}++", name)
                                : step == -1 ? fmt::format("{}--", name)
                                : step < 0   ? fmt::format("{} -= {}{}", name, -step, suffix)
                                             : fmt::format("{} += {}{}", name, step, suffix);
    const std::string bound = loop_bound(type, end);
    if (!options_.watch_loops)
      return fmt::format("for (var {}: {} = {}; {} {} {}; {}) {{", name, wgsl_type(type), begin.text, name,
                         step > 0 ? "<" : ">", bound, advance);
    ++open_loops_;
    return fmt::format(
        "atomicAdd(&ls_open, 1u); for (var {0}: {1} = {2}; ; {3}) {{ if (!({0} {4} {5})) {{ "
        "atomicSub(&ls_open, 1u); break; }}",
        name, wgsl_type(type), begin.text, advance, step > 0 ? "<" : ">", bound);
  }
  /// The next value of a counter that stays at the end of its type where a step would pass it.
  static std::string saturating(Type type, std::string_view name, int64_t step) {
    if (type == Type::u32)
      return step < 0 ? fmt::format("{0} = max({0}, {1}u) - {1}u", name, -step)
                      : fmt::format("{0} = min({0}, {1}u) + {2}u", name, UINT32_MAX - step, step);
    const int64_t last = step < 0 ? INT32_MIN - step : INT32_MAX - step;
    return fmt::format("{0} = {1}({0}, i32({2})) + i32({3})", name, step < 0 ? "max" : "min", last, step);
  }
  std::string loop_head() const override {
    if (!options_.watch_loops) return "loop {";
    ++open_loops_;
    return "atomicAdd(&ls_open, 1u); loop {";
  }
  bool watches_loops() const { return options_.watch_loops && has_loops_; }
  // The count of open loops lives in memory: a compiler knows that a loop is left by its exits only, and
  // would fold a mark that they set.
  void break_statement() override {
    if (options_.watch_loops) line("atomicSub(&ls_open, 1u);");
    line("break;");
  }
  void after_loop() override { open_loops_ -= options_.watch_loops; }
  void return_statement() override {
    if (open_loops_ > 0) line(fmt::format("atomicSub(&ls_open, {}u);", open_loops_));
    line("return;");
  }

  bool is_constant(Id id, uint32_t bits) const {
    return function()[id].op == Op::constant && uint32_t(function()[id].imm) == bits;
  }
  /// NVIDIA's compiler of SPIR-V, as ptxas 13.0, miscounts downward loops whose bound it sees to be a
  /// negation: their bounds are hidden, and so is every negation of a whole number.
  void before_for(const Instruction& i, int64_t step) override {
    const auto known = [&](Id id) { return function()[id].op == Op::constant; };
    hides_bound_ = step < 0 && !(known(i.args[0]) && known(i.args[1]));
  }
  std::string loop_bound(Type type, const Expression& end) const {
    if (!hides_bound_) return tight(end, Precedence::sum);
    return fmt::format("ls_bound_{}({})", wgsl_type(type), end.text);
  }

  /// The index as text that may be repeated.
  std::string repeatable(const Expression& index) {
    if (index.depth == 0) return index.text;
    const std::string name = fresh("at");
    line(fmt::format("let {} = {};", name, index.text));
    return name;
  }
  static std::string plus(const std::string& index, int k) {
    return k == 0 ? index : fmt::format("{} + {}i", index, k);
  }

  const WgslOptions& options_;
  PointsPlan plan_;
  bool exact_ = true, writes_buffers_ = false;
  mutable int open_loops_ = 0;  // around the current statement, where they are watched
  bool has_loops_ = false, hides_bound_ = false;
  std::vector<bool> fixed_;
  std::vector<bool> atomic_shared_, has_base_;
  std::vector<WgslBufferText> buffers_;
  std::vector<WgslWord> own_words_;
  std::vector<WgslWord>& words_;
  std::set<std::string> names_;
  std::string prologue_;
  std::vector<std::string> builtins_;
  std::set<std::pair<Type, ir::Reduction>> reductions_;
  std::set<uint32_t> exchanged_, added_;  // shared arrays with a compare_exchange, with sums of floats
};

Expression WgslPrinter::literal(Type type, uint64_t bits) {
  const auto b = uint32_t(bits);
  switch (type) {
    case Type::boolean: return {bits ? "true" : "false"};
    case Type::u32: return {fmt::format("{}u", b)};
    case Type::i32:
      if (b == 0x80000000u) return {"bitcast<i32>(0x80000000u)"};
      return {fmt::format("{}i", int32_t(b)), int32_t(b) < 0 ? Precedence::unary : Precedence::atom};
    default: break;
  }
  const float v = std::bit_cast<float>(b);
  // Compilers of WGSL refuse constant expressions that are not finite.
  if (!std::isfinite(v)) return {fmt::format("bitcast<f32>(0x{:08x}u + ls_hidden)", b), Precedence::atom, 0};
  if (std::fabs(v) < 0x1p20f && v * 16 == std::trunc(v * 16) && b != 0x80000000u)
    return {fmt::format("{}{}f", double(v), v == std::trunc(v) ? ".0" : ""),
            v < 0 ? Precedence::unary : Precedence::atom};
  return {fmt::format("bitcast<f32>(0x{:08x}u)", b)};
}

std::string_view WgslPrinter::op_template(const Instruction& i, Type type) const {
  const bool is_u32 = type == Type::u32, is_bool = type == Type::boolean;
  switch (i.op) {
    case Op::idiv: return is_u32 ? "ls_idiv_u32($0, $1)" : "ls_idiv_i32($0, $1)";
    case Op::irem: return is_u32 ? "ls_irem_u32($0, $1)" : "ls_irem_i32($0, $1)";
    case Op::ineg: return is_u32 ? "ls_neg_u32($0)" : "ls_neg_i32($0)";
    case Op::isub:
      if (is_constant(i.args[0], 0)) return is_u32 ? "ls_neg_u32($1)" : "ls_neg_i32($1)";
      return wgsl_column(i.op);
    case Op::imul:
      if (is_constant(i.args[1], 0xffffffffu)) return is_u32 ? "ls_neg_u32($0)" : "ls_neg_i32($0)";
      return wgsl_column(i.op);
    case Op::iabs: return is_u32 ? "$0" : "ls_abs_i32($0)";
    case Op::shl: return is_u32 ? "$0 << ($1 & 31u)" : "$0 << (u32($1) & 31u)";
    case Op::shr: return is_u32 ? "$0 >> ($1 & 31u)" : "$0 >> (u32($1) & 31u)";
    case Op::bxor: return is_bool ? "$0 != $1" : "$0 ^ $1";
    case Op::bnot: return is_bool ? "!$0" : "~$0";
    // Without parentheses `f(a < b, c >> d)` reads as a template.
    case Op::ilt:
    case Op::flt: return "($0 < $1)";
    case Op::fne:
      return "!($0 == $1)";  // some adapters take a != b as ordered
    // As bits: the sign of zeros and NaN must not get lost.
    case Op::fneg: return exact_ ? "ls_neg($0)" : "-$0";
    case Op::fabs: return exact_ ? "ls_abs($0)" : "abs($0)";
    case Op::fdiv: return exact_ && !options_.native_division ? "ls_div($0, $1)" : "$0 / $1";
    case Op::fsqrt: return exact_ && !options_.native_division ? "ls_sqrt($0)" : "sqrt($0)";
    // Through whole numbers: as floats a driver takes them for its own minimum, whose NaN and zeros are
    // others.
    case Op::fmin: return exact_ ? "ls_fmin($0, $1)" : wgsl_column(i.op);
    case Op::fmax: return exact_ ? "ls_fmax($0, $1)" : wgsl_column(i.op);
    case Op::fma: return exact_ && !options_.native_fma ? "ls_fma($0, $1, $2)" : "fma($0, $1, $2)";
    default: return wgsl_column(i.op);
  }
}

Expression WgslPrinter::elementary(const Instruction& i, Type type, std::span<const Expression> operands) {
  Expression e = expand(op_template(i, type), operands);
  const auto id = size_t(&i - function().instructions.data());
  if (id >= fixed_.size() || !fixed_[id]) return e;
  // An unknown zero between the operations: no rule of a driver's compiler spans it.
  const Expression zero = named("zero", word({WgslWord::Kind::zero}));
  return {fmt::format("bitcast<f32>(bitcast<u32>({}) ^ {})", e.text, zero.text), Precedence::atom,
          e.depth + 2};
}

Expression WgslPrinter::convert(Type to, Type from, const Expression& value) {
  if (to == Type::boolean)
    return {fmt::format("({} != {})", tight(value, Precedence::sum), literal(from, 0).text), Precedence::atom,
            value.depth + 1};
  if (from == Type::boolean) {
    const Expression one = literal(to, to == Type::f32 ? 0x3f800000u : 1), zero = literal(to, 0);
    return call("select", {&zero, &one, &value});
  }
  if (from == Type::f32) return call(to == Type::i32 ? "ls_f32_to_i32" : "ls_f32_to_u32", {&value});
  if (from == Type::u32 && to == Type::f32) return call("ls_u32_to_f32", {&value});
  return call(wgsl_type(to), {&value});
}

Expression WgslPrinter::load(const Instruction& i, const Expression& index) {
  const WgslBufferText& buffer = buffers_[i.imm];
  if (i.lanes == 1) return {buffer.load(index.text), Precedence::atom, index.depth + 1};
  const std::string at = repeatable(index);
  std::string text = type_name(i.type, i.lanes) + "(";
  for (int k = 0; k < i.lanes; ++k) text += (k ? ", " : "") + buffer.load(plus(at, k));
  return {text + ")", Precedence::atom, 1};
}

void WgslPrinter::store(const Instruction& i, const Expression& index, std::span<const Expression> values) {
  const WgslBufferText& buffer = buffers_[i.imm];
  if (values.size() == 1) return line(buffer.store(index.text, values[0].text) + ";");
  const std::string at = repeatable(index);
  for (size_t k = 0; k < values.size(); ++k) line(buffer.store(plus(at, int(k)), values[k].text) + ";");
}

Expression WgslPrinter::atomic(const Instruction&, ir::AtomicTarget target, const Expression& index,
                               const Expression& value, const Expression* compare) {
  const int depth = std::max(index.depth, value.depth) + 1;
  if (!target.shared)
    return {
        buffers_[target.array].atomic(target.op, index.text, value.text, compare ? &compare->text : nullptr),
        Precedence::atom, depth};
  const std::string place = fmt::format("s{}[{}]", target.array, index.text);
  if (shared_bits(target.array)) {
    added_.insert(target.array);
    return {fmt::format("s{}_add({}, {})", target.array, index.text, value.text), Precedence::atom, depth};
  }
  if (!compare)
    return {fmt::format("{}(&{}, {})", wgsl_atomic_function(target.op), place, value.text), Precedence::atom,
            depth};
  exchanged_.insert(target.array);
  return {fmt::format("s{}_exchange({}, {}, {})", target.array, index.text, value.text, compare->text),
          Precedence::atom, depth};
}

Expression WgslPrinter::group_reduce(const Instruction& i, const Expression& value) {
  const auto kind = ir::Reduction(i.imm);
  reductions_.insert({i.type, kind});
  const Expression here = lane();
  return {fmt::format("ls_reduce_{}_{}({}, {})", wgsl_type(i.type), int(kind), here.text, value.text),
          Precedence::atom, value.depth + 1};
}

void WgslPrinter::async_copy(const Instruction& i, const Expression& shared_index, const Expression& offset) {
  const auto shared = uint32_t(i.imm >> 32), buffer = uint32_t(i.imm);
  const std::string to = repeatable(shared_index), from = repeatable(offset);
  for (int k = 0; k < i.lanes; ++k)
    shared_store(shared, {plus(to, k)}, {buffers_[buffer].load(plus(from, k))});
}

/// The rest of main behind its head.
std::string WgslPrinter::main_text(const std::string& body) {
  const ir::Function& f = function();
  // Lanes outside of the domain leave at once; groups kernels have none but behind the last row of a single axis, where
  // a coordinate may also pass 2^31.
  std::string guard;
  if (f.rank == 1)
    guard = fmt::format("u32({}) >= u32({})", coord(0).text, extent(0).text);
  else if (f.domain == ir::Domain::points)
    for (int a = 0; a < f.rank; ++a)
      guard += fmt::format("{}{} >= {}", a ? " || " : "", coord(a).text, extent(a).text);
  std::string text = prologue_;
  if (!guard.empty()) text += fmt::format("  if ({}) {{ return; }}\n", guard);
  for (uint32_t l = 0; l < f.locals.size(); ++l)
    text += fmt::format("  var l{}: array<{}, {}>;\n", l, wgsl_type(value_type(f.locals[l].storage)),
                        f.locals[l].count);
  return text + body + "}\n";
}

/// The same with the body as a function `point`, called for each point of the lane.
std::string WgslPrinter::points_text(const std::array<int32_t, 3>& group, const std::string& body,
                                     std::string& point) {
  const int rank = function().rank;
  std::string parameters, outside, lets;
  const auto arguments = [&](const std::string& along) {
    std::string list;
    for (int a = 0; a < rank; ++a)
      list += fmt::format("{}at_{}{}", a ? ", " : "", kAxes[size_t(a)], a == plan_.axis ? along : "");
    return list;
  };
  for (int a = 0; a < rank; ++a) {
    const char letter = kAxes[size_t(a)];
    parameters += fmt::format("{}at_{}: i32", a ? ", " : "", letter);
    lets += fmt::format("  let at_{} = {};\n", letter, coordinate(a));
    lets += fmt::format("  let end_{} = {};\n", letter, signed_word({WgslWord::Kind::extent, 0, uint8_t(a)}));
    outside += fmt::format("{0}u32(at_{1}) >= u32(end_{1})", a ? " || " : "", letter);
  }
  point = fmt::format("fn point({}) {{\n{}{}}}\n\n", parameters, prologue_, body);
  std::string text = lets + fmt::format("  if ({}) {{ return; }}\n", outside);
  const char letter = kAxes[size_t(plan_.axis)];
  const int step = plan_.axis == 0 ? group[0] : 1;
  const auto along = [&](int k) { return k ? fmt::format(" + {}i", k * step) : std::string(); };
  text += fmt::format("  if (u32(at_{0}{1}) < u32(end_{0})) {{\n", letter, along(plan_.points - 1));
  for (int k = 0; k < plan_.points; ++k) text += fmt::format("    point({});\n", arguments(along(k)));
  text += "    return;\n  }\n";
  for (int k = 0; k + 1 < plan_.points; ++k)
    text += fmt::format("  {}point({}){}\n",
                        k ? fmt::format("if (u32(at_{0}{1}) < u32(end_{0})) {{ ", letter, along(k)) : "",
                        arguments(along(k)), k ? "; }" : ";");
  return text + "}\n";
}

WgslSource WgslPrinter::print() {
  const ir::Function& f = function();
  WgslSource out;
  out.group = wgsl_group(f, options_.group_lanes);
  const std::string body = print_body(), called = called_functions();
  std::string point;
  const std::string main = plan_.points > 1 ? points_text(out.group, body, point) : main_text(body);

  std::string accessors;
  for (uint32_t b = 0; b < buffers_.size(); ++b) {
    const std::string base = has_base_[b] ? word({WgslWord::Kind::base, b, 0}) : std::string();
    accessors += buffers_[b].accessors(body, base);
  }
  std::string reductions;
  std::set<Type> trees;
  for (const auto& [type, kind] : reductions_) {
    trees.insert(type);
    reductions += wgsl_reduce_function(type, kind, out.group[0] * out.group[1] * out.group[2]);
  }

  // The weak form may fail without a cause.
  for (uint32_t s : exchanged_)
    reductions += fmt::format(R"(fn s{0}_exchange(index: i32, value: {1}, compare: {1}) -> {1} {{
  loop {{
    let r = atomicCompareExchangeWeak(&s{0}[index], compare, value);
    if (r.exchanged || r.old_value != compare) {{ return r.old_value; }}
  }}
  return compare;
}}
)",
                              s, wgsl_type(value_type(f.shared[s].storage)));
  for (uint32_t s : added_)
    reductions += fmt::format(
        "fn s{0}_add(index: i32, value: f32) -> f32 {{\n  var old: f32;\n  {1}\n  return old;\n}}\n", s,
        wgsl_float_add("old", fmt::format("s{}[index]", s), "value"));
  const std::string helpers =
      used_helpers(wgsl_helpers(options_.branches), accessors + reductions + called + point + main);
  const std::string zero = helpers.find("ls_zero") == std::string::npos
                               ? ""
                               : fmt::format("  ls_zero = {};\n", word({WgslWord::Kind::zero}));

  std::string& text = out.text;
  text = fmt::format("// {}\n", f.name);
  if (!words_.empty())
    text +=
        fmt::format("@group(1) @binding(0) var<uniform> A: array<vec4<u32>, {}>;\n", (words_.size() + 3) / 4);
  for (const WgslBufferText& buffer : buffers_) text += buffer.declarations(out.bindings);
  if (watches_loops()) {
    text += fmt::format("@group(0) @binding({}) var<storage, read_write> ls_open: atomic<u32>;\n",
                        out.bindings.size());
    out.bindings.push_back({kLoopFlag, 0, true});
  }
  for (uint32_t s = 0; s < f.shared.size(); ++s) {
    const std::string_view element = shared_bits(s) ? "u32" : wgsl_type(value_type(f.shared[s].storage));
    text += fmt::format("var<workgroup> s{}: array<{}, {}>;\n", s,
                        atomic_shared_[s] ? fmt::format("atomic<{}>", element) : element, f.shared[s].count);
  }
  for (Type type : trees)
    text += fmt::format("var<workgroup> ls_tree_{0}: array<{0}, {1}>;\n", wgsl_type(type),
                        out.group[0] * out.group[1] * out.group[2]);
  text +=
      "\n" + helpers + accessors + reductions + called + "\n" + point + main_head(out.group) + zero + main;
  out.words = std::move(words_);
  return out;
}

}  // namespace

WgslSource print_wgsl(const ir::Function& lowered, const WgslOptions& options) {
  if (const std::string refusal = wgsl_refusal(lowered); !refusal.empty())
    throw UnsupportedError(fmt::format("kernel {}: {}", lowered.name, refusal), "WGSL", "32-bit types");
  return WgslPrinter(lowered, options).print();
}

std::string emit_wgsl(const ir::Function& traced, Numerics numerics) {
  if (const std::string refusal = wgsl_refusal(traced); !refusal.empty())
    throw UnsupportedError(fmt::format("kernel {}: {}", traced.name, refusal), "WGSL", "32-bit types");
  WgslOptions options;
  options.numerics = numerics;
  return print_wgsl(compile::lower(traced, {compile::Target::wgsl, numerics}), options).text;
}

}  // namespace lockstep::clike
