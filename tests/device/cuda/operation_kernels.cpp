#include "device/cuda/operation_kernels.hpp"

#include <array>

namespace lockstep::cuda_test {

using ir::Builder;
using ir::Id;
using ir::Op;

namespace {

std::vector<Op> elementary_rows(Type type) {
  std::vector<Op> rows;
  for (int op = 0; op < int(Op::count_); ++op) {
    const bool unsigned_only = Op(op) == Op::umulhi;
    if (ir::is_elementary(Op(op)) && ir::takes(Op(op), type) && !(unsigned_only && is_signed(type)))
      rows.push_back(Op(op));
  }
  return rows;
}

std::vector<Op> math_rows() {
  std::vector<Op> rows;
  for (int op = 0; op < int(Op::count_); ++op)
    if (ir::is_math(Op(op))) rows.push_back(Op(op));
  return rows;
}

Id as_u64(Builder& b, Id value) {
  switch (b.type(value)) {
    case Type::f32:
    case Type::i32: return b.convert(Type::u64, b.bitcast(Type::u32, value));
    case Type::f64:
    case Type::i64: return b.bitcast(Type::u64, value);
    default: return b.convert(Type::u64, value);
  }
}

OperationKernel build(std::string kernel_name, Type type, std::vector<Op> rows, bool conversions) {
  auto slots = std::make_shared<std::vector<Slot>>();
  const auto trace = [=](Builder& b) {
    slots->clear();
    ir::Function& f = b.function();
    const Storage storage = Storage(type == Type::f32   ? Storage::f32
                                    : type == Type::f64 ? Storage::f64
                                    : type == Type::i32 ? Storage::i32
                                    : type == Type::u32 ? Storage::u32
                                    : type == Type::i64 ? Storage::i64
                                                        : Storage::u64);
    for (const char* buffer : {"a", "b", "c"}) f.buffers.push_back({buffer, storage, 1, ir::Access::read});
    f.buffers.push_back({"out", Storage::u64, 1, ir::Access::write});
    f.scalars.push_back({"n", Type::i32});
    const Id x = b.emit(Op::coord, Type::i32), n = b.emit(Op::param, Type::i32);
    const Id at = b.convert(f.index_type, x);
    std::array<Id, 3> v{};
    for (size_t k = 0; k < 3; ++k) v[k] = b.emit(Op::load, type, {at}, k);
    const auto write = [&](std::string slot, Id value) {
      const Id place = b.op(Op::iadd, {b.op(Op::imul, {n, b.i32(int(slots->size()))}), x});
      slots->push_back({std::move(slot), b.type(value)});
      b.emit(Op::store, Type::none, {b.convert(f.index_type, place), as_u64(b, value)}, 3);
    };
    for (const Op op : rows) {
      const int n_operands = ir::arity(op);
      write(std::string(ir::name(op)), n_operands == 1   ? b.op(op, {v[0]})
                                       : n_operands == 2 ? b.op(op, {v[0], v[1]})
                                                         : b.op(op, {v[0], v[1], v[2]}));
    }
    if (!conversions) return;
    for (Type to : kNumberTypes)
      if (to != type) write("convert to " + std::string(name(to)), b.convert(to, v[0]));
    for (Type to : kNumberTypes)
      if (to != type && size_of(to) == size_of(type))
        write("bitcast to " + std::string(name(to)), b.bitcast(to, v[0]));
    write("select", b.select(b.op(is_float(type) ? Op::flt : Op::ilt, {v[0], v[1]}), v[1], v[2]));
    // A constant on one side takes another path through the CUDA printer.
    if (is_float(type)) {
      const Id c = b.number(type, 1.5), zero = b.number(type, 0);
      write("fmin(a, 1.5)", b.op(Op::fmin, {v[0], c}));
      write("fmax(a, 1.5)", b.op(Op::fmax, {v[0], c}));
      write("fmin(1.5, a)", b.op(Op::fmin, {c, v[0]}));
      write("fmax(1.5, a)", b.op(Op::fmax, {c, v[0]}));
      write("fmin(a, 0)", b.op(Op::fmin, {v[0], zero}));
      write("fmax(0, a)", b.op(Op::fmax, {zero, v[0]}));
    } else {
      const Id c = b.number(type, 7);
      for (Op op : {Op::idiv, Op::irem, Op::shl, Op::shr})
        write(std::string(ir::name(op)) + " by 7", b.op(op, {v[0], c}));
      write("irem of 7", b.op(Op::irem, {c, v[0]}));
      if (is_signed(type)) write("irem of -7", b.op(Op::irem, {b.number(type, -7), v[0]}));
    }
  };
  Kernel kernel = Kernel::trace(std::move(kernel_name), ir::Domain::points, 1, {}, trace);
  return {type, *slots, kernel};
}

}  // namespace

OperationKernel operation_kernel(Type type) {
  return build("test.operations." + std::string(name(type)), type, elementary_rows(type), true);
}
OperationKernel math_kernel(Type type) {
  return build("test.math." + std::string(name(type)), type, math_rows(), false);
}

}  // namespace lockstep::cuda_test
