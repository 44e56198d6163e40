// Points kernels: for z, for y, for x by vectors. Vectors that lie whole in the inner part of the row take a
// version without masks and clamps; the others a general one.
#include <llvm/IR/MDBuilder.h>

#include <unordered_set>

#include "compile/llvm/lanes/lane_code.hpp"
#include "compile/llvm/loops/kernel_code.hpp"
#include "compile/native/peeling.hpp"

namespace lockstep::compile::simd {

using llvm::BasicBlock;
using llvm::Value;

namespace {

/// Code of larger kernels is made once, for masked vectors only.
constexpr size_t kTwoVersions = 1500;

/// Mostly 64-bit floats: half as many lanes fill a register.
bool is_wide_kernel(const ir::Function& f) {
  int64_t narrow = 0, wide = 0;
  for (const ir::Block& block : f.blocks)
    for (ir::Id id : block) {
      const ir::Instruction& i = f[id];
      if (i.op == ir::Op::constant) continue;
      narrow += i.type == Type::f32;
      wide += i.type == Type::f64;
    }
  return wide > narrow;
}

/// Work of the loops of a points kernel, an inner pass counted kPasses times.
class LoopWork {
 public:
  explicit LoopWork(const ir::Function& f) : f_(f), divergence_(f, LaneScope::row) { block(0, 0); }

  /// The work that all lanes share is at least a third of their own, so two vectors at once save much of it. Their
  /// sums must fit into the registers, and hardly a lane reads alone. Short loops wait for memory instead.
  bool shares_much(size_t registers) const {
    return own_ >= kLong && 20 * broadcasts_ >= own_ && 3 * (shared_ + broadcasts_) >= own_ &&
           2 * most_sums_ < registers && 50 * alone_ <= own_;
  }

 private:
  static constexpr double kPasses = 16, kLong = 64;

  void block(uint32_t number, double passes) {
    std::unordered_set<ir::Id> sums;
    for (ir::Id id : f_.blocks[number]) {
      const ir::Instruction& i = f_[id];
      const bool loop = i.op == ir::Op::for_ || i.op == ir::Op::loop;
      for (uint32_t inner : i.blocks)
        if (inner != ir::kNoBlock) block(inner, !loop ? passes : passes > 0 ? passes * kPasses : 1);
      if (passes > 0) count(id, passes);
      if (i.op == ir::Op::set && divergence_[i.args[0]].is_varying()) sums.insert(i.args[0]);
    }
    if (passes > 0) most_sums_ = std::max(most_sums_, sums.size());
  }
  void count(ir::Id id, double passes) {
    const ir::Instruction& i = f_[id];
    if (i.op == ir::Op::load) {
      if (divergence_.uniform(i.args[0])) broadcasts_ += passes * i.lanes;
      if (divergence_[i.args[0]].is_varying()) alone_ += passes;
    } else if (ir::is_pure(i.op) && i.op != ir::Op::constant) {
      (divergence_[id].is_varying() ? own_ : shared_) += passes;
    }
  }

  const ir::Function& f_;
  const Divergence divergence_;
  double shared_ = 0, broadcasts_ = 0, own_ = 0, alone_ = 0;
  size_t most_sums_ = 0;
};

}  // namespace

int choose_width(const ir::Function& f, const VectorTarget& target) {
  const bool wide = is_wide_kernel(f);
  int width = target.lanes > 4 && wide ? target.lanes / 2 : target.lanes;
  if (f.domain == ir::Domain::points && target.lanes == 8 && !wide && f.functions.empty() &&
      LoopWork(f).shares_much(size_t(target.registers)))
    return 2 * width;
  const int full = width;
  if (f.domain == ir::Domain::groups) {
    // A vector inside one row of the group keeps y and z uniform.
    while (width > 4 && f.group[0] % width != 0 && f.group[1] * f.group[2] > 1) width /= 2;
    if (f.group[0] % width != 0 && f.group[1] * f.group[2] > 1) width = full;
    while (width > 4 && width / 2 >= f.group_lanes()) width /= 2;
  }
  return width;
}

CountedLoop open_loop(CodeUnit& u, Value* low, Value* high) {
  auto& b = u.b();
  CountedLoop loop{nullptr, u.new_block("for"), u.new_block("for_done")};
  BasicBlock* before = b.GetInsertBlock();
  b.CreateCondBr(b.CreateICmpSLT(low, high), loop.body, loop.done);
  b.SetInsertPoint(loop.body);
  loop.index = b.CreatePHI(low->getType(), 2);
  loop.index->addIncoming(low, before);
  loop.index->addIncoming(high, loop.body);  // replaced by close_loop; keeps the bound at hand
  return loop;
}

void close_loop(CodeUnit& u, const CountedLoop& loop, int64_t step) {
  auto& b = u.b();
  Value* high = loop.index->getIncomingValue(1);
  Value* stride = llvm::ConstantInt::get(loop.index->getType(), uint64_t(step));
  // Tested so that the next index is computed only where it does not overflow.
  Value* more = b.CreateICmpSGT(b.CreateSub(high, loop.index), stride);
  Value* next = b.CreateNSWAdd(loop.index, stride);
  loop.index->setIncomingValue(1, next);
  loop.index->setIncomingBlock(1, b.GetInsertBlock());
  b.CreateCondBr(more, loop.body, loop.done);
  b.SetInsertPoint(loop.done);
}

namespace {

/// Value that is fixed for the launch, as i64, computed before the loops.
class LaunchCode : public LaneCode {
 public:
  using LaneCode::LaneCode;

 protected:
  Slot import(ir::Id id) override {
    const ir::Instruction& i = f_[id];
    for (int k = 0; k < i.arg_count(); ++k) slot(i.args[k]);
    return pure(id);
  }
};

Value* row_limit(CodeUnit& u, LaunchCode& code, const Affine& affine) {
  auto& b = u.b();
  // The bound on x: x >= -affine, or x <= -affine.
  Value* sum = b.getInt64(uint64_t(-affine.constant));
  for (const Affine::Term& t : affine.terms) {
    Value* v = b.CreateSExt(code.scalar(t.id), b.getInt64Ty());
    sum = t.sign > 0 ? b.CreateSub(sum, v) : b.CreateAdd(sum, v);
  }
  return sum;
}

}  // namespace

void emit_points(CodeUnit& u) {
  auto& b = u.b();
  const ir::Function& f = u.f();
  const int width = u.width();
  const bool two_versions = f.instructions.size() <= kTwoVersions;
  const Peeling peeling = two_versions ? find_peeling(f) : Peeling();
  const Divergence general(f, LaneScope::row), inner(f, LaneScope::row, &peeling.assumptions);

  llvm::Type *narrow = b.getInt32Ty(), *wide = b.getInt64Ty();
  Value *x_low = u.box_low(0), *x_high = u.box_high(0);
  // Vectors that start in [inner_low, inner_high] are inner ones.
  Value *inner_low = x_low, *inner_high = b.CreateNSWSub(x_high, b.getInt32(uint32_t(width)));
  if (!peeling.bounds.empty()) {
    inner_low = b.CreateSExt(inner_low, wide), inner_high = b.CreateSExt(inner_high, wide);
    LaunchCode code(u, general, nullptr, width);
    for (const RowBound& bound : peeling.bounds) {
      Value* limit = row_limit(u, code, bound.affine);
      if (bound.low)
        inner_low = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, inner_low, limit);
      else
        inner_high = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, inner_high,
                                             b.CreateSub(limit, b.getInt64(uint64_t(width - 1))));
    }
    inner_low = b.CreateTrunc(
        b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, inner_low, b.getInt64(INT32_MAX)), narrow);
    inner_high = b.CreateTrunc(
        b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, inner_high, b.getInt64(uint64_t(-1))), narrow);
  }

  const CountedLoop z = open_loop(u, u.box_low(2), u.box_high(2));
  const CountedLoop y = open_loop(u, u.box_low(1), u.box_high(1));
  const CountedLoop x = open_loop(u, x_low, x_high);
  BasicBlock* next = u.new_block("next");
  const auto version = [&](BasicBlock* begin, const Divergence& divergence, const Assumptions* assumptions,
                           bool masked) {
    b.SetInsertPoint(begin);
    LaneCode code(u, divergence, assumptions, width);
    code.coord = {x.index, y.index, z.index};
    Value* mask = nullptr;
    if (masked) { mask = b.CreateICmpSLT(code.iota(narrow), code.splat(b.CreateSub(x_high, x.index))); }
    BasicBlock* end = u.new_block("end");
    code.run(f.blocks[0], mask, end);
    b.CreateBr(next);
  };
  if (two_versions) {
    BasicBlock *inner_begin = u.new_block("inner"), *general_begin = u.new_block("general");
    Value* is_inner = b.CreateAnd(b.CreateICmpSLE(inner_low, x.index), b.CreateICmpSLE(x.index, inner_high));
    b.CreateCondBr(is_inner, inner_begin, general_begin,
                   llvm::MDBuilder(u.context()).createBranchWeights(1000, 1));
    version(inner_begin, inner, &peeling.assumptions, false);
    version(general_begin, general, nullptr, true);
  } else {
    version(b.GetInsertBlock(), general, nullptr, true);
  }
  b.SetInsertPoint(next);
  close_loop(u, x, width);
  close_loop(u, y, 1);
  close_loop(u, z, 1);
  u.finish();
}

}  // namespace lockstep::compile::simd
