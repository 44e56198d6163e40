#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/kernel/kernel.hpp"

using namespace lockstep;

namespace {
Kernel axpy(float a) {
  return kernel("test.axpy", [a](At<1> at, Grid<f32, 1> x, InOut<f32, 1> y) {
    Var<f32> sum = 0.0f;
    if_(Val<f32>(x[at]) > 0.0f, [&] { sum = fma(Val<f32>(a), x[at], y[at]); }, [&] { sum = y[at]; });
    y[at] = sum;
  });
}
}  // namespace

TEST(Print, ShowsEachInstructionOnALine) {
  ir::Function f;
  f.name = "test.text";
  f.domain = ir::Domain::groups;
  f.group = {32, 1, 1};
  f.buffers = {{"b0", Storage::f32, 1, ir::Access::read},
               {"b1", Storage::u32, 2, ir::Access::read_write, false, true}};
  f.scalars = {{"p0", Type::f64}};
  f.shared = {{"s0", Storage::f32, 32}};
  ir::Builder b(f);
  using ir::Op;
  const ir::Id sum = b.variable(b.f32(0.1f)), at = b.emit(Op::lane, Type::i32),
               limit = b.emit(Op::param, Type::f64, {}, 0);
  const ir::Id x = b.emit(Op::load, Type::f32, {at}, 0, ir::kStreaming);
  b.if_(
      b.op(Op::flt, {b.f64(1.5), limit}), [&] { b.set(sum, x); },
      [&] { b.emit(Op::shared_store, Type::none, {at, x}, 0); });
  b.for_(b.i32(-1), at, 2, [&](ir::Id k) {
    b.emit(Op::atomic, Type::u32, {k, b.u32(7)}, ir::AtomicTarget{ir::AtomicOp::max, false, 1}.bits());
    b.emit(Op::stride, Type::i32, {}, 8);
  });
  b.emit(Op::group_reduce, Type::f32, {b.get(sum)}, uint64_t(ir::Reduction::min));
  EXPECT_EQ(ir::print(f), R"(kernel test.text groups rank 1 group 32x1x1 min_blocks 0 index i32
  buffer 0 b0: f32 rank 1 read
  buffer 1 b1: u32 rank 2 read_write atomic
  scalar 0 p0: f64
  shared 0 s0: f32 x 32
{
  %0 = constant 0x3dcccccd : f32  ; 0.1
  %1 = variable %0 : f32
  %2 = lane : i32
  %3 = param 0 : f64  ; 0:p0
  %4 = load 0:b0 %2 : f32 streaming
  %5 = constant 0x3ff8000000000000 : f64  ; 1.5
  %6 = flt %5, %3 : bool
  if_ %6 {
    set %1, %4
  } else {
    shared_store 0:s0 %2, %4
  }
  %10 = constant 0xffffffff : i32  ; -1
  %11 = constant 0x2 : i32  ; 2
  for_ %10, %2, %11 {
    %13 = loop_index : i32
    %14 = constant 0x7 : u32  ; 7
    %15 = atomic max 1:b1 %13, %14 : u32
    %16 = stride 1:b1 axis 0 : i32
  }
  %17 = get %1 : f32
  %18 = group_reduce min %17 : f32
}
)");
}

TEST(Print, OneInstructionReadsAsInTheWhole) {
  const Kernel k = axpy(0.1f);
  const std::string whole = ir::print(k.function());
  for (ir::Id id : k.function().blocks[0])
    EXPECT_NE(whole.find(ir::print(k.function(), id)), std::string::npos) << ir::print(k.function(), id);
}

TEST(Print, SurvivesMissingOperandsAndBlocks) {
  ir::Function f;
  f.name = "broken";
  ir::Instruction i{ir::Op::if_};
  i.args[0] = 77;
  i.blocks = {5, 6};
  f.instructions.push_back(i);
  f.blocks[0] = {0, 9};
  EXPECT_NE(ir::print(f).find("block 5 does not exist"), std::string::npos);
  EXPECT_NE(ir::print(f, 9).find("%?9"), std::string::npos);
}

TEST(Fingerprint, EqualForEqualKernelsAndDiffersInOneBit) {
  EXPECT_EQ(ir::fingerprint(axpy(0.1f).function()), ir::fingerprint(axpy(0.1f).function()));
  EXPECT_NE(ir::fingerprint(axpy(0.1f).function()),
            ir::fingerprint(axpy(std::nextafter(0.1f, 1.0f)).function()));
  EXPECT_EQ(ir::fingerprint(axpy(0.1f).function()).size(), 32u);
}

TEST(Fingerprint, IgnoresWhatStandsInNoBlock) {
  ir::Function f = axpy(0.1f).function();
  const std::string before = ir::fingerprint(f);
  f.instructions.push_back(ir::Instruction{ir::Op::barrier});
  EXPECT_EQ(ir::fingerprint(f), before);
}

TEST(Fingerprint, TellsBuffersOfOneNameApart) {
  const auto trace = [](bool first) {
    ir::Function f = kernel("test.two", [first](At<1> at, Grid<f32, 1> a, Grid<f32, 1> b, Out<f32, 1> c) {
                       c[at] = first ? a[at] : b[at];
                     }).function();
    f.buffers[1].name = f.buffers[0].name;
    f.buffers[1].by_point = f.buffers[0].by_point = true;
    return ir::fingerprint(f);
  };
  EXPECT_NE(trace(true), trace(false));
}
