#include "compile/llvm/long_blocks.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Pass.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

namespace lockstep::compile::simd {

namespace {

/// Floating-point numbers of one type in an array of the module.
struct Constants {
  std::vector<llvm::Constant*> values;
  std::unordered_map<llvm::Constant*, size_t> position;
  llvm::GlobalVariable* array = nullptr;
};

/// The number that an operand is, or that all lanes of it are; null for others and for zero.
llvm::Constant* number(const llvm::Use& operand) {
  auto* const value = llvm::dyn_cast<llvm::Constant>(operand.get());
  if (!value || !value->getType()->isFPOrFPVectorTy() || value->isNullValue()) return nullptr;
  return llvm::dyn_cast_or_null<llvm::ConstantFP>(value->getType()->isVectorTy() ? value->getSplatValue()
                                                                                 : value);
}

void load_constants(llvm::Function& function) {
  std::vector<llvm::Use*> uses;
  std::map<llvm::Type*, Constants> all;
  for (llvm::Instruction& i : llvm::instructions(function)) {
    if (llvm::isa<llvm::PHINode>(i)) continue;
    for (llvm::Use& operand : i.operands())
      if (llvm::Constant* const value = number(operand)) {
        uses.push_back(&operand);
        Constants& same = all[value->getType()];
        if (same.position.emplace(value, same.values.size()).second) same.values.push_back(value);
      }
  }
  for (auto& [type, constants] : all) {
    auto* const array = llvm::ArrayType::get(type, constants.values.size());
    constants.array =
        new llvm::GlobalVariable(*function.getParent(), array, true, llvm::GlobalValue::PrivateLinkage,
                                 llvm::ConstantArray::get(array, constants.values), "constants");
  }
  for (llvm::Use* const use : uses) {
    llvm::Constant* const value = number(*use);
    const Constants& constants = all[value->getType()];
    llvm::IRBuilder<> b(llvm::cast<llvm::Instruction>(use->getUser()));
    llvm::LoadInst* const load = b.CreateLoad(
        value->getType(), b.CreateConstInBoundsGEP2_64(constants.array->getValueType(), constants.array, 0,
                                                       constants.position.at(value)));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(function.getContext(), {}));
    const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(use->get()->getType());
    use->set(vector ? b.CreateVectorSplat(vector->getNumElements(), load) : load);
  }
}

/// Where pieces begin: the first instruction of each but the first.
std::vector<llvm::Instruction*> cuts(llvm::BasicBlock& block) {
  std::vector<llvm::Instruction*> order;
  std::unordered_map<const llvm::Value*, size_t> position;
  for (llvm::Instruction& i : block) {
    position[&i] = order.size();
    order.push_back(&i);
  }
  // alive[k]: values that are made before instruction k and used there or later.
  std::vector<int64_t> alive(order.size() + 1);
  for (size_t k = 0; k < order.size(); ++k) {
    size_t last = k;
    for (const llvm::User* user : order[k]->users())
      if (const auto found = position.find(user); found != position.end())
        last = std::max(last, found->second);
    ++alive[k + 1];
    --alive[last + 1];
  }
  for (size_t k = 1; k < alive.size(); ++k) alive[k] += alive[k - 1];
  const size_t first = size_t(std::distance(block.begin(), block.getFirstInsertionPt()));
  std::vector<llvm::Instruction*> found;
  for (size_t begin = first; order.size() - begin > 2 * kPiece;) {
    const auto from = alive.begin() + ptrdiff_t(begin + kPiece);
    begin = size_t(std::min_element(from, from + ptrdiff_t(kPiece)) - alive.begin());
    found.push_back(order[begin]);
  }
  return found;
}

struct LongBlocks : llvm::FunctionPass {
  static char ID;
  LongBlocks() : FunctionPass(ID) {}
  llvm::StringRef getPassName() const override { return "Pieces of long blocks"; }

  bool runOnFunction(llvm::Function& function) override {
    std::vector<llvm::BasicBlock*> blocks;
    for (llvm::BasicBlock& block : function)
      if (block.size() > kLongBlock) blocks.push_back(&block);
    if (blocks.empty()) return false;
    load_constants(function);
    for (llvm::BasicBlock* const block : blocks) {
      const std::vector<llvm::Instruction*> begins = cuts(*block);
      // The last piece first, so that each instruction moves once.
      for (auto begin = begins.rbegin(); begin != begins.rend(); ++begin) block->splitBasicBlock(*begin);
    }
    return true;
  }
};
char LongBlocks::ID = 0;

}  // namespace

size_t longest_block(const llvm::Module& module) {
  size_t longest = 0;
  for (const llvm::Function& function : module)
    for (const llvm::BasicBlock& block : function) longest = std::max(longest, block.size());
  return longest;
}

llvm::FunctionPass* make_long_block_pass() { return new LongBlocks; }

}  // namespace lockstep::compile::simd
