// Kernels traced from Python: the traced values, memory, and the traced kernel.
#include <algorithm>
#include <map>

#include "bind.hpp"
#include "compile/clike/cuda/cuda.hpp"
#include "compile/clike/nvrtc.hpp"
#include "compile/clike/wgsl/wgsl.hpp"
#include "compile/llvm/emit.hpp"
#include "trace.hpp"

namespace lockstep::python {
namespace {

/// A word of ir/ops.def as kernels say it.
struct Word {
  ir::Op floats, integers;
  int arity;
};
const std::map<std::string, Word>& words() {
  static const std::map<std::string, Word> all = {
#define LOCKSTEP_WORD(word, arity, floats, integers) {#word, {ir::Op::floats, ir::Op::integers, arity}},
#define LOCKSTEP_MATH(name, arity, ...) {#name, {ir::Op::name, ir::Op::none, arity}},
#define LOCKSTEP_INFIX(symbol, floats, integers) {#symbol, {ir::Op::floats, ir::Op::integers, 2}},
#define LOCKSTEP_PREFIX(symbol, floats, integers) {"unary " #symbol, {ir::Op::floats, ir::Op::integers, 1}},
#define LOCKSTEP_COMPARE(symbol, floats, integers, swapped) \
  {#symbol, {ir::Op::floats, ir::Op::integers, swapped ? -2 : 2}},
#include "lockstep/ir/ops.def"
  };
  return all;
}

AnyVal apply(const std::string& name, const std::vector<AnyVal>& v) {
  const auto found = words().find(name);
  if (found == words().end())
    throw InputError("operation " + name, "lockstep.kernel", "a word of the kernel language");
  const auto [floats, integers, arity] = found->second;
  if (int(v.size()) != std::abs(arity))
    throw InputError(name + " of " + std::to_string(v.size()) + " operands", "lockstep.kernel",
                     std::to_string(std::abs(arity)));
  switch (arity) {
    case 1: return detail::any_op(floats, integers, {v[0]});
    case 2: return detail::any_op(floats, integers, {v[0], v[1]});
    case -2: return detail::any_op(floats, integers, {v[1], v[0]});
    default: return detail::any_op(floats, integers, {v[0], v[1], v[2]});
  }
}

AnyVal number(const std::string& type, nb::handle value) {
  const Type t = type_of(type);
  if (nb::isinstance<nb::bool_>(value)) return AnyVal::number(t, nb::cast<bool>(value));
  if (nb::isinstance<nb::int_>(value)) {
    int64_t small;
    if (nb::try_cast(value, small)) return AnyVal::number(t, small);
    return AnyVal::number(t, nb::cast<uint64_t>(value));
  }
  return AnyVal::number(t, nb::cast<double>(value));
}

std::vector<ir::Id> ids_of(const std::vector<AnyVal>& values) {
  std::vector<ir::Id> ids;
  for (const AnyVal& v : values) ids.push_back(Index(v).value().as<i32>().id());
  return ids;
}

Boundary boundary_of(const std::string& text) {
  if (text == "clamp") return Boundary::clamp;
  if (text == "periodic") return Boundary::periodic;
  if (text == "zero") return Boundary::zero;
  if (text == "unchecked") return Boundary::unchecked;
  throw InputError("boundary " + text, "lockstep.Grid", "clamp, periodic, zero or unchecked");
}

/// A buffer of the kernel that is being traced, of any type, rank and access: what Grid, Out and InOut do.
class AnyBuffer : public detail::BufferRef {
 public:
  AnyBuffer(uint32_t buffer, Storage storage, int rank) : BufferRef(buffer, rank), storage_(storage) {}

  /// Leading coordinates and a point of the domain with offsets (x first).
  AnyVal load_point(const std::vector<AnyVal>& lead, const std::vector<int>& offsets, Boundary boundary,
                    bool streaming) const {
    ir::Id inside = ir::kNone;
    const ir::Id at = place(lead, offsets, boundary, &inside);
    return inside_or_zero(load_at(at, streaming), inside);
  }
  void store_point(const std::vector<AnyVal>& lead, const std::vector<int>& offsets, const AnyVal& value,
                   bool streaming) const {
    ir::Id inside = ir::kNone;
    store_at(place(lead, offsets, Boundary::clamp, &inside), value, streaming);
  }
  /// At explicit coordinates, under a rule where one is named.
  AnyVal load(const std::vector<AnyVal>& at, const std::string& boundary, bool streaming) const {
    if (boundary.empty() || boundary == "unchecked") return load_at(place(at), streaming);
    check_rank(at.size());
    AnyBuffer ruled = *this;
    ruled.boundary_ = boundary_of(boundary);
    ruled.ruled_ = true;
    const std::vector<ir::Id> k = ids_of(at);
    ir::Id inside = ir::kNone;
    const ir::Id element = rank_ == 1   ? ruled.offset_by_rule({k[0]}, &inside)
                           : rank_ == 2 ? ruled.offset_by_rule({k[0], k[1]}, &inside)
                           : rank_ == 3 ? ruled.offset_by_rule({k[0], k[1], k[2]}, &inside)
                                        : ruled.offset_by_rule({k[0], k[1], k[2], k[3]}, &inside);
    return inside_or_zero(load_at(element, streaming), inside);
  }
  void store(const std::vector<AnyVal>& at, const AnyVal& value, bool streaming) const {
    store_at(place(at), value, streaming);
  }
  AnyVal atomic(const std::string& op, const std::vector<AnyVal>& at, const AnyVal& value) const {
    static const std::map<std::string, ir::AtomicOp> ops = {
        {"add", ir::AtomicOp::add}, {"min", ir::AtomicOp::min},  {"max", ir::AtomicOp::max},
        {"or", ir::AtomicOp::or_},  {"and", ir::AtomicOp::and_}, {"exchange", ir::AtomicOp::exchange}};
    const auto found = ops.find(op);
    const Type type = value_type(storage_);
    if (found == ops.end() || (type != Type::i32 && type != Type::u32) || value.type() != type)
      throw InputError("atomic " + op + " on " + std::string(name(storage_)), where(),
                       "add, min, max, or, and or exchange on i32 or u32, with a value of that type");
    detail::builder().function().buffers[index()].atomic = true;
    const ir::AtomicTarget target{found->second, false, index()};
    return detail::any_value(
        detail::builder().emit(ir::Op::atomic, type, {place(at), detail::id_of(value)}, target.bits()));
  }

 private:
  static std::string where() { return detail::builder().where(); }
  static AnyVal inside_or_zero(const AnyVal& value, ir::Id inside) {
    if (inside == ir::kNone) return value;
    return select(detail::any_value(inside), value, AnyVal::number(value.type(), 0));
  }
  void check_rank(size_t coordinates) const {
    if (int(coordinates) != rank_)
      throw InputError(std::to_string(coordinates) + " coordinates", where(), std::to_string(rank_));
  }
  ir::Id place(const std::vector<AnyVal>& at) const {
    check_rank(at.size());
    const std::vector<ir::Id> ids = ids_of(at);
    return offset(std::span<const ir::Id>(ids));
  }
  ir::Id place(const std::vector<AnyVal>& lead, const std::vector<int>& offsets, Boundary boundary,
               ir::Id* inside) const {
    const int n = int(offsets.size());
    if (int(lead.size()) + n != rank_ || lead.size() > 2)
      throw InputError(std::to_string(lead.size()) + " coordinates and a point of rank " + std::to_string(n),
                       where(), "together rank " + std::to_string(rank_));
    const std::vector<ir::Id> ids = ids_of(lead);
    switch (ids.size()) {
      case 0: return offset_at({}, offsets.data(), n, boundary, inside);
      case 1: return offset_at({ids[0]}, offsets.data(), n, boundary, inside);
      default: return offset_at({ids[0], ids[1]}, offsets.data(), n, boundary, inside);
    }
  }
  AnyVal load_at(ir::Id at, bool streaming) const {
    ir::Instruction load{ir::Op::load};
    load.type = value_type(storage_);
    load.flags = streaming ? ir::kStreaming : 0;
    load.imm = index();
    load.args[0] = at;
    return detail::any_value(detail::builder().append(load));
  }
  void store_at(ir::Id at, const AnyVal& value, bool streaming) const {
    if (value.type() != value_type(storage_))
      throw InputError(
          "a value of " + std::string(name(value.type())) + " stored in " + std::string(name(storage_)),
          where(), "a value of " + std::string(name(value_type(storage_))) + " (lockstep.cast converts)");
    ir::Instruction store{ir::Op::store};
    store.flags = streaming ? ir::kStreaming : 0;
    store.imm = index();
    store.args[0] = at;
    store.args[1] = detail::id_of(value);
    detail::builder().append(store);
  }
  Storage storage_;
};

/// One parameter as the package hands it in: what ("read", "write", "read_write" or "scalar"), type, rank.
using Parameter = std::tuple<std::string, std::string, int>;

/// Declares the parameters as kernels with typed ones do: b0, b1 … and p0, p1 …
nb::object declare(ir::Builder& b, const Parameter& parameter) {
  const auto& [kind, type, rank] = parameter;
  ir::Function& f = b.function();
  if (kind == "scalar") {
    f.scalars.push_back({"p" + std::to_string(f.scalars.size()), type_of(type)});
    return nb::cast(detail::any_value(b.emit(ir::Op::param, type_of(type), {}, f.scalars.size() - 1)));
  }
  const ir::Access access = kind == "read"    ? ir::Access::read
                            : kind == "write" ? ir::Access::write
                                              : ir::Access::read_write;
  const Storage storage = storage_of(type);
  if (!is_device_storage(storage))
    throw InputError("a buffer of " + type, "kernel " + f.name,
                     "f32, f64, i32, u32, i64, u64, f16, bf16 or u8");
  f.buffers.push_back({"b" + std::to_string(f.buffers.size()), storage, rank, access});
  f.buffers.back().position = int(f.buffers.size() + f.argument_numbers()) - 1;
  return nb::cast(AnyBuffer(uint32_t(f.buffers.size() - 1), storage, rank));
}

/// The author's file and line.
using Line = std::pair<std::string, uint32_t>;
/// All that is traced from here on comes from there.
void mark(ir::Builder& b, const Line& line) {
  std::vector<std::string>& files = b.function().files;
  const std::string name = line.first.substr(line.first.find_last_of('/') + 1);
  const auto found = std::find(files.begin(), files.end(), name);
  const auto number = ir::Place(found - files.begin());
  if (found == files.end()) files.push_back(name);
  constexpr ir::Place kMost = (ir::Place(1) << ir::kLineBits) - 1;
  const bool fits = number < (ir::Place(1) << (32 - ir::kLineBits)) && line.second <= kMost;
  b.at(fits ? number << ir::kLineBits | ir::Place(line.second) : ir::Place(0));
}

Kernel trace(const std::string& name, const std::string& domain, int rank, const KernelOptions& options,
             const Line& line, const std::vector<Parameter>& parameters, const nb::object& body) {
  return Kernel::trace(name, domain == "groups" ? ir::Domain::groups : ir::Domain::points, rank, options,
                       [&](ir::Builder& b) {
                         mark(b, line);
                         b.function().place = b.place();
                         nb::list arguments;
                         for (const Parameter& p : parameters) arguments.append(declare(b, p));
                         body(arguments);
                       });
}

std::string source(const Kernel& kernel, const std::string& target, bool fast, const std::string& arch) {
  const ir::Function& f = kernel.function();
  const Numerics numerics = fast ? Numerics::fast : Numerics::exact;
  if (target == "ir") return ir::print(f);
  if (target == "llvm" || target == "asm") return compile::emit_llvm(f, numerics, target == "asm", arch);
  if (target == "wgsl") return clike::emit_wgsl(f, numerics);
  if (target == "cuda") return clike::emit_cuda(f, numerics, arch.empty() ? 90 : std::stoi(arch.substr(3)));
  throw InputError("target " + target, "kernel.source", "ir, llvm, asm, cuda or wgsl");
}

}  // namespace

void bind_kernels(nb::module_& module) {
  nb::class_<AnyVal>(module, "Val").def_prop_ro("type", [](const AnyVal& v) {
    return v.type() == kIndexType ? std::string("index") : std::string(name(v.type()));
  });
  nb::class_<Kernel>(module, "Kernel")
      .def_prop_ro("name", &Kernel::name)
      .def_prop_ro("fingerprint", [](const Kernel& k) { return ir::fingerprint(k.function()); })
      .def("source", &source, nb::arg("target"), nb::arg("fast") = false, nb::arg("arch") = "");
  nb::class_<AnyBuffer>(module, "AnyBuffer")
      .def("size", [](const AnyBuffer& b, int axis) { return AnyVal(b.size(axis)); })
      .def("load_point",
           [](const AnyBuffer& b, const std::vector<AnyVal>& lead, const std::vector<int>& offsets,
              const std::string& boundary,
              bool streaming) { return b.load_point(lead, offsets, boundary_of(boundary), streaming); })
      .def("store_point", &AnyBuffer::store_point)
      .def("load", &AnyBuffer::load)
      .def("store", &AnyBuffer::store)
      .def("atomic", &AnyBuffer::atomic);
  module.def("trace", [](const std::string& name, const std::string& domain, int rank, const nb::tuple& group,
                         int min_blocks, bool contract, const Line& line,
                         const std::vector<Parameter>& parameters, const nb::object& body) {
    KernelOptions options;
    options.group = {nb::cast<int>(group[0]), nb::cast<int>(group[1]), nb::cast<int>(group[2])};
    options.min_blocks = min_blocks;
    options.contract = contract;
    return trace(name, domain, rank, options, line, parameters, body);
  });
  module.def("at", [](const std::string& path, uint32_t line) { mark(detail::builder(), {path, line}); });
  module.def("words", [] {
    std::map<std::string, int> all;
    for (const auto& [name, word] : words()) all[name] = std::abs(word.arity);
    return all;
  });
  module.def("apply", &apply);
  module.def("number", &number);
  module.def("select", [](const AnyVal& c, const AnyVal& a, const AnyVal& b) { return select(c, a, b); });
  module.def("convert", [](const AnyVal& v, const std::string& to) { return v.convert(type_of(to)); });
  module.def("bitcast", [](const AnyVal& v, const std::string& to) { return v.bitcast(type_of(to)); });
  module.def("powi", [](const AnyVal& v, int n) { return powi(v, n); });
  module.def("round", [](const AnyVal& v) { return round(v); });
  module.def("rounded", [](const AnyVal& v) {
    return detail::any_value(detail::builder().keep(ir::Op::rounded, detail::id_of(v)));
  });
  module.def("rounded_product", [](const AnyVal& a, const AnyVal& b) { return rounded_product(a, b); });
  module.def("uniform", [](const AnyVal& v) { return uniform(v); });
}

}  // namespace lockstep::python
