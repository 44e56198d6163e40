#include <gtest/gtest.h>

#include "lockstep/error.hpp"
#include "lockstep/kernel/kernel.hpp"

using namespace lockstep;

namespace {

constexpr KernelOptions kGroup64{{64, 1, 1}};

/// Message of the InputError that tracing this kernel throws.
template <class Body>
std::string complaint(Body body, KernelOptions options = kGroup64) {
  try {
    kernel("test.bad", body, options);
  } catch (const InputError& e) { return e.what(); }
  return "accepted";
}
#define EXPECT_COMPLAINT(text, ...)                                           \
  do {                                                                        \
    const std::string message = complaint(__VA_ARGS__);                       \
    EXPECT_NE(message.find(text), std::string::npos) << message;              \
    EXPECT_NE(message.find("kernel test.bad"), std::string::npos) << message; \
  } while (0)

ir::Function small() {
  return kernel("test.small", [](At<1> at, Grid<f32, 1> a, Out<f32, 1> b) { b[at] = a[at] + 1.0f; })
      .function();
}
std::string broken(const ir::Function& f) {
  try {
    ir::verify(f);
  } catch (const InternalError& e) { return e.what(); }
  return "accepted";
}

}  // namespace

TEST(Verify, NamesThePlaceAndTheInstruction) {
  const std::string message = complaint([](Group<1> g, Out<i32, 1> out) {
    if_(g.id() == 0, [&] { if_(g.lane() < 3, [&] { barrier(); }); });
    out(0) = 1;
  });
  EXPECT_NE(message.find("body.3.then.3.then.0: barrier"), std::string::npos) << message;
}

TEST(Verify, BarrierInDivergentFlow) {
  EXPECT_COMPLAINT("barrier in divergent flow", [](Group<1> g) { if_(g.lane() < 3, [] { barrier(); }); });
  EXPECT_COMPLAINT("group_reduce in divergent flow", [](Group<1> g, Out<i32, 1> out) {
    for_(0, g.lane(), [&](Val<i32> i) { out(0) = group_sum(i); });
  });
  EXPECT_COMPLAINT("barrier in divergent flow", [](Group<1> g) {
    return_if(g.lane() == 5);
    barrier();
  });
  EXPECT_COMPLAINT("barrier in divergent flow", [](Group<1> g) {
    for_(0, 4, [&](Val<i32> i) {
      barrier();
      return_if(g.lane() == i);
    });
  });
  EXPECT_COMPLAINT("barrier in divergent flow", [](Group<1> g) {
    loop_([&] {
      barrier();
      break_if(g.lane() == 5);
    });
  });
  EXPECT_COMPLAINT("barrier in divergent flow", [](Group<1> g) {
    for_(0, 4, [&](Val<i32> i) {
      continue_if(g.lane() == i);
      barrier();
    });
  });
  EXPECT_COMPLAINT("barrier in divergent flow", [](Group<1> g) {
    Var<i32> n = 0;
    if_(g.lane() > 3, [&] { n = 1; });
    if_(Val<i32>(n) > 0, [] { barrier(); });
  });
  EXPECT_COMPLAINT("barrier in divergent flow", [](Group<1> g, InOut<i32, 1> counter) {
    if_(Val<i32>(counter.atomic_add(0, g.id())) > 0, [] { barrier(); });
  });
}

TEST(Verify, BarrierInUniformFlowIsAccepted) {
  EXPECT_EQ(complaint([](Group<1> g, Grid<i32, 1> n, Param<i32> limit, InOut<i32, 1> out) {
              SharedArray<i32> s(64);
              return_if(g.id() > limit);
              for_(0, n(g.id()), [&](Val<i32> i) {
                continue_if(i == 3);
                s[g.lane()] = i;
                barrier();
                break_if(Val<i32>(s[0]) > 100);
                if_(Val<i32>(n(i)) > 2, [&] { barrier(); });
                barrier();
              });
              Var<i32> passes = 0;
              while_([&] { return Val<i32>(passes) < limit; },
                     [&] {
                       passes += 1;
                       barrier();
                     });
              for_(0, 3, [&](Val<i32> i) {
                barrier();
                continue_if(g.lane() == i);
                out(g.global()) = i;
              });
              if_(uniform(g.lane() / 64) == 0, [] { barrier(); });
              if_(group_sum(g.lane()) > 7, [] { barrier(); });
            }),
            "accepted");
}

TEST(Verify, JumpsOutsideOfLoops) {
  EXPECT_COMPLAINT("break_ outside of a loop", [](At<1>) { break_(); });
  EXPECT_COMPLAINT("continue_ outside of a loop", [](At<1> at) { if_(at.x > 2, [] { continue_(); }); });
}

TEST(Verify, ValueOutsideOfItsBlock) {
  EXPECT_COMPLAINT("used outside of the block that defines it", [](At<1> at, Out<i32, 1> out) {
    ir::Id escaped = ir::kNone;
    if_(at.x > 2, [&] { escaped = Val<i32>(at.x + 1).id(); });
    out[at] = Val<i32>::from(escaped);
  });
}

TEST(Verify, AccessModes) {
  EXPECT_COMPLAINT("buffer b0 is read", [](At<1> at, Out<i32, 1> out) { out[at] += 1; });
  EXPECT_COMPLAINT("InOut buffer", [](At<1> at, Out<i32, 1> out) { out.atomic_add(at.x, 1); });
}

TEST(Verify, GroupsOnly) {
  EXPECT_COMPLAINT("barrier in a points kernel", [](At<1>) { barrier(); });
  EXPECT_COMPLAINT(
      "group reduction over 48 lanes", [](Group<1> g, Out<i32, 1> out) { out(0) = group_sum(g.lane()); },
      KernelOptions{{48, 1, 1}});
  EXPECT_COMPLAINT("shared array in a points kernel", [](At<1>) { SharedArray<f32> s(4); });
}

TEST(Verify, GroupAxesOfPointsKernels) {
  EXPECT_COMPLAINT(
      "group of 2 lanes along axis 1", [](At<1> at, Out<i32, 1> out) { out[at] = 1; },
      KernelOptions{{8, 2, 1}});
}

TEST(Verify, AsyncCopyWidth) {
  EXPECT_COMPLAINT("asynchronous copy of 32 bytes", [](Group<1> g, Grid<f64, 1> a) {
    SharedArray<f64> s(256);
    a.copy_async<4>(s, g.lane() * 4, g.lane() * 4);
  });
}

TEST(Verify, TypesThatDiffer) {
  ir::Function f = small();
  f.instructions[f.blocks[0].back()].args[1] = f.blocks[0][0];
  EXPECT_NE(broken(f).find("operand 1 of type i32"), std::string::npos) << broken(f);
  EXPECT_NE(broken(f).find("expected f32"), std::string::npos) << broken(f);
}

TEST(Verify, WhatNoPassMayProduce) {
  const ir::Function good = small();
  ir::verify(good);
  const auto mutated = [&](auto change) {
    ir::Function f = good;
    change(f);
    return broken(f);
  };
  using F = ir::Function&;
  EXPECT_NE(mutated([](F f) { f.blocks[0].push_back(f.blocks[0][0]); }).find("two blocks"),
            std::string::npos);
  EXPECT_NE(mutated([](F f) { f.blocks[0].push_back(1000); }).find("does not exist"), std::string::npos);
  EXPECT_NE(mutated([](F f) { f[f.blocks[0].back()].imm = 7; }).find("buffer 7 does not exist"),
            std::string::npos);
  EXPECT_NE(mutated([](F f) { f[f.blocks[0].back()].args[1] = ir::kNone; }).find("1 operands"),
            std::string::npos);
  EXPECT_NE(mutated([](F f) { f.index_type = Type::i64; }).find("expected i64"), std::string::npos);
  EXPECT_NE(mutated([](F f) { f[f.blocks[0].back()].lanes = 3; }).find("1, 2 or 4"), std::string::npos);
  EXPECT_NE(mutated([](F f) { f[f.blocks[0].back()].blocks[0] = 0; }).find("blocks"), std::string::npos);
  EXPECT_NE(mutated([](F f) {
              for (auto& i : f.instructions)
                if (i.op == ir::Op::constant) i.imm |= uint64_t(1) << 40;
            }).find("bits above its type"),
            std::string::npos);
  EXPECT_NE(mutated([](F f) {
              for (auto& i : f.instructions)
                if (i.op == ir::Op::fadd) i.type = Type::f64;
            }).find("result of type f64"),
            std::string::npos);
}
