// Modules of whole kernels: valid, small in locals, and refused by name beyond an engine's limits.
#include "compile/wasm/emit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "compile/lower.hpp"
#include "compile/passes/structure/inline_calls.hpp"
#include "compile/wasm/kernel_code.hpp"
#include "compile/wasm/lower_op.hpp"
#include "generator.hpp"
#include "lockstep/error.hpp"
#include "lockstep/ir/builder.hpp"

namespace lockstep::compile::wasm {
namespace {

using ir::Id;
using ir::Op;

ir::Function lowered(const ir::Function& traced) {
  ir::Function f = lower(traced, {Target::cpu, Numerics::exact});
  inline_all_calls(f);
  return f;
}

/// y[x] = the sum of `count` numbers made of a[x], all of them at hand before the first is added.
ir::Function many_values(int count, bool together) {
  ir::Function f;
  f.name = "many";
  f.buffers.push_back({"a", Storage::f32, 1, ir::Access::read});
  f.buffers.push_back({"y", Storage::f32, 1, ir::Access::write});
  ir::Builder b(f);
  const Id at = b.emit(Op::coord, Type::i32, {}, 0), a = b.emit(Op::load, Type::f32, {at}, 0);
  std::vector<Id> values;
  Id sum = a;
  for (int k = 0; k < count; ++k) {
    values.push_back(b.op(Op::fmul, {together ? a : sum, b.f32(float(k % 8) + 0.5f)}));
    if (!together) sum = b.op(Op::fmax, {sum, values.back()});
  }
  if (together)
    for (Id value : values) sum = b.op(Op::fmax, {sum, value});
  b.emit(Op::store, Type::none, {at, sum}, 1);
  return f;
}

TEST(WasmEmit, LocalsOfDeadValuesServeAgain) {
  const auto locals = [](int values) {
    const ir::Function f = many_values(values, false);
    Unit unit(f);
    emit_points(unit);
    return unit.body().locals();
  };
  EXPECT_EQ(locals(400), locals(100));
  EXPECT_EQ(locals(4000), locals(1000));  // of kernels with one version
}

TEST(WasmEmit, LimitsOfEnginesAreNamed) {
  try {
    emit(many_values(50001, true));
    FAIL() << "no error";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::compile);
    EXPECT_THAT(error.what(), testing::HasSubstr("kernel many as WebAssembly: 500"));
    EXPECT_THAT(error.what(), testing::HasSubstr("locals; engines take 50000"));
  }
}

/// The text of an access outside, from the numbers that a launch leaves.
TEST(WasmEmit, AccessesOutsideAreDescribed) {
  simd::Frame frame{};
  frame.buffers[1].bytes = 4 * 61;
  const std::vector<CheckedAccess> accesses = {{kNoBuffer, 64, "a shared or local array", ""},
                                               {1, 4, "buffer y", "many.cpp:7"}};
  frame.fault = uint64_t(1) << 32 | 64;
  EXPECT_EQ(fault_text("many", accesses, frame),
            "kernel many: element 64 of a shared or local array, which has 64");
  frame.fault = uint64_t(2) << 32 | 0x80000000u;
  EXPECT_EQ(fault_text("many", accesses, frame),
            "kernel many: element -2147483648 of buffer y, which has 61, near many.cpp:7");
}

/// One access is checked once for each line and array, and needs no more than its number and its line.
TEST(WasmEmit, ChecksAreListed) {
  const std::vector<CheckedAccess> accesses = emit(many_values(3, false)).accesses;
  ASSERT_EQ(accesses.size(), 2u);
  EXPECT_EQ(accesses[0].array, "buffer a");
  EXPECT_EQ(accesses[1].array, "buffer y");
  EXPECT_EQ(accesses[1].size, 4);
}

/// The engine's fma takes the place of the sums that round once, and a shared memory has a limit.
TEST(WasmEmit, EnginesDecide) {
  ir::Function f = many_values(1, false);
  ir::Builder b(f);
  f.blocks[0].pop_back();  // the store
  const Id a = f.blocks[0][1];
  b.emit(Op::store, Type::none, {f.blocks[0][0], b.op(Op::fma, {a, a, a})}, 1);
  const auto contains = [](const Bytes& bytes, const Bytes& part) {
    return std::search(bytes.begin(), bytes.end(), part.begin(), part.end()) != bytes.end();
  };
  const Bytes fused{0xfd, 0x85, 0x02}, promoted{0xfd, 0x5f}, shared{2, 3, 1, 0x80, 0x80, 4};
  const Bytes plain = emit(f).bytes, other = emit(f, {.fuses = true, .shared = true}).bytes;
  EXPECT_FALSE(contains(plain, fused) || contains(plain, shared));
  EXPECT_TRUE(contains(plain, promoted));
  EXPECT_TRUE(contains(other, fused) && contains(other, shared));
  EXPECT_FALSE(contains(other, promoted));
}

/// Every operation has a form for every type that it takes, by lane and as a scalar.
TEST(WasmEmit, EveryOperationHasAForm) {
  const ir::Function frame = many_values(1, false);
  int forms = 0;
  for (int number = 0; number < int(Op::count_); ++number)
    for (const Type type :
         {Type::boolean, Type::i32, Type::u32, Type::i64, Type::u64, Type::f32, Type::f64}) {
      const Op op = Op(number);
      if (!ir::is_elementary(op) || !ir::takes(op, type)) continue;
      for (const bool lanes : {false, true}) {
        Unit unit(frame);
        const Value x = unit.b().variable(type, lanes);
        const Value y = lower_op(unit.b(), op, x, x, x);
        EXPECT_EQ(y.type, ir::result_type(op, type)) << ir::name(op);
        EXPECT_EQ(y.vector, lanes) << ir::name(op);
        ++forms;
      }
    }
  EXPECT_GT(forms, 250);
}

TEST(WasmEmit, RandomKernelsAreValidModules) {
  if (std::system("node --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "node is missing";
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("lockstep-wasm-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  constexpr int kKernels = 60;
  for (int k = 0; k < kKernels; ++k) {
    fuzz::Recipe recipe;
    recipe.seed = uint64_t(7000 + k);
    const Bytes bytes = emit(lowered(fuzz::generate(recipe).function)).bytes;
    std::ofstream(folder / (std::to_string(k) + ".wasm"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  }
  const std::string script =
      "const fs = require('fs'); const files = fs.readdirSync('.'); let valid = 0; for (const f of files) "
      "valid += "
      "WebAssembly.validate(fs.readFileSync(f)); process.exit(valid === " +
      std::to_string(kKernels) + " ? 0 : 1)";
  const std::string command = "cd '" + folder.string() + "' && node -e \"" + script + "\"";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::compile::wasm
