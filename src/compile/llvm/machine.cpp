#include "compile/llvm/machine.hpp"

#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <map>
#include <mutex>

#include "compile/llvm/analysis/distribute.hpp"
#include "compile/llvm/long_blocks.hpp"
#include "compile/llvm/loops/kernel_code.hpp"
#include "core/environment/environment.hpp"
#include "lockstep/error.hpp"

namespace lockstep::compile::simd {

namespace {
/// Features besides those of the processor. LLVM 19 swaps the operands of masked AVX512-FP16 comparisons
/// without the condition when it folds a load into one; halves are storage only, so nothing is lost without
/// them.
std::string extra_features() {
  return llvm::Triple(llvm::sys::getProcessTriple()).isX86() ? "-avx512fp16" : "";
}
}  // namespace

const HostProcessor& host_processor() {
  static const HostProcessor host = [] {
    HostProcessor h;
    // A lesser processor's code runs here too: for tests of what other machines get.
    if (const char* chosen = environment::text("LOCKSTEP_CPU")) {
      h.name = chosen;
      h.features = extra_features();
      return h;
    }
    h.name = llvm::sys::getHostCPUName().str();
    llvm::SubtargetFeatures features;
    for (const auto& feature : llvm::sys::getHostCPUFeatures())
      features.AddFeature(feature.first(), feature.second);
    if (const std::string extra = extra_features(); !extra.empty())
      features.AddFeature(extra.substr(1), false);
    h.features = features.getString();
    return h;
  }();
  return host;
}

bool quick_code() {
  const char* text = environment::text("LOCKSTEP_CPU_CODE");
  return text && std::string_view(text) == "quick";
}

std::unique_ptr<llvm::TargetMachine> make_machine(const std::string& cpu) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    // It takes up to a third of the compile time of large kernels. Its effect on their speed is in
    // docs/design/cpu.md.
    if (llvm::cl::Option* scheduler = llvm::cl::getRegisteredOptions().lookup("post-RA-scheduler"))
      scheduler->addOccurrence(1, "post-RA-scheduler", "false");
  });
  const std::string triple = llvm::sys::getProcessTriple();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) throw UnsupportedError(error, "LLVM", "a build of LLVM with this machine's target");
  const std::string name = cpu.empty() ? host_processor().name : cpu;
  {
    const std::unique_ptr<llvm::MCSubtargetInfo> check(target->createMCSubtargetInfo(triple, "", ""));
    if (!check->isCPUStringValid(name))
      throw InputError("processor \"" + name + "\"", cpu.empty() ? "LOCKSTEP_CPU" : "--arch",
                       "an LLVM processor name, such as x86-64-v3 or znver4");
    // LLVM ends the process for the others.
    const std::unique_ptr<llvm::MCSubtargetInfo> chosen(target->createMCSubtargetInfo(triple, name, ""));
    if (llvm::Triple(triple).isX86() && !chosen->checkFeatures("+64bit"))
      throw InputError("processor \"" + name + "\"", cpu.empty() ? "LOCKSTEP_CPU" : "--arch",
                       "a processor with 64-bit code");
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.UnsafeFPMath = options.NoNaNsFPMath = options.NoInfsFPMath = options.NoSignedZerosFPMath = false;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, name, cpu.empty() ? host_processor().features : extra_features(), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, quick_code() ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default,
      true));
}

VectorTarget vector_target(const llvm::TargetMachine& machine) {
  VectorTarget target;
  target.x86 = machine.getTargetTriple().isX86();
  if (!target.x86) return target;
  const llvm::MCSubtargetInfo& features = *machine.getMCSubtargetInfo();
  const bool avx512 = features.checkFeatures("+avx512f") && features.checkFeatures("+avx512vl") &&
                      features.checkFeatures("+avx512bw") && features.checkFeatures("+avx512dq");
  target.lanes = avx512 ? 16 : features.checkFeatures("+avx2") ? 8 : 4;
  target.registers = avx512 ? 32 : 16;
  target.permutes = target.lanes >= 8;
  target.scatters = avx512;
  return target;
}

namespace {

/// Masked gathers and scatters as calls: where the processor has none, each becomes branches for every lane, and
/// they are most of the code.
void outline_masked(llvm::Module& module) {
  std::vector<llvm::IntrinsicInst*> found;
  for (llvm::Function& function : module)
    for (llvm::Instruction& i : llvm::instructions(function))
      if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
          call && (call->getIntrinsicID() == llvm::Intrinsic::masked_gather ||
                   call->getIntrinsicID() == llvm::Intrinsic::masked_scatter))
        found.push_back(call);
  std::map<std::pair<llvm::Function*, llvm::Value*>, llvm::Function*> outlined;
  for (llvm::IntrinsicInst* call : found) {
    llvm::Function* intrinsic = call->getCalledFunction();
    const unsigned alignment = call->getIntrinsicID() == llvm::Intrinsic::masked_gather ? 1 : 2;
    std::vector<llvm::Value*> arguments(call->arg_begin(), call->arg_end());
    llvm::Value* const aligned = arguments[alignment];
    arguments.erase(arguments.begin() + alignment);
    llvm::Function*& own = outlined[{intrinsic, aligned}];
    if (!own) {
      std::vector<llvm::Type*> types;
      for (const llvm::Value* a : arguments) types.push_back(a->getType());
      own = llvm::Function::Create(llvm::FunctionType::get(call->getType(), types, false),
                                   llvm::GlobalValue::InternalLinkage, "masked", module);
      own->addFnAttr(llvm::Attribute::NoInline);
      llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "", own));
      std::vector<llvm::Value*> passed;
      for (llvm::Argument& a : own->args()) passed.push_back(&a);
      passed.insert(passed.begin() + alignment, aligned);
      llvm::Value* const result = b.CreateCall(intrinsic, passed);
      if (call->getType()->isVoidTy())
        b.CreateRetVoid();
      else
        b.CreateRet(result);
    }
    llvm::CallInst* const replaced = llvm::CallInst::Create(own, arguments, "", call->getIterator());
    call->replaceAllUsesWith(replaced);
    call->eraseFromParent();
  }
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);

  // Vector code is explicit: what remains is scalar promotion, redundancy and what does not depend on the
  // loop.
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager first, second;
  first.addPass(llvm::LoopRotatePass());
  first.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(first), true));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::InstCombinePass());
  second.addPass(llvm::IndVarSimplifyPass());
  second.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(second), true));
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function, functions);
}

}  // namespace

namespace {
/// The functions that `f` calls, and those that they call.
std::vector<llvm::Function*> emit_called(llvm::Module& module, const ir::Function& f,
                                         const VectorTarget& target, int width) {
  std::vector<llvm::Function*> all;
  for (const ir::Function& called : f.functions) {
    CodeUnit unit(module, called, target, width);
    unit.called = emit_called(module, called, target, width);
    emit_function(unit);
    all.push_back(unit.function());
  }
  return all;
}
}  // namespace

GeneratedModule generate(llvm::LLVMContext& context, const ir::Function& lowered,
                         llvm::TargetMachine& machine) {
  GeneratedModule result;
  result.module = std::make_unique<llvm::Module>(lowered.name, context);
  llvm::Module& module = *result.module;
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  const VectorTarget target = vector_target(machine);
  {
    const int width = choose_width(lowered, target);
    Distributed loops = distribute_loops(lowered, target, width);
    CodeUnit unit(module, loops.function, target, width, std::move(loops.parts));
    unit.called = emit_called(module, loops.function, target, width);
    if (lowered.domain == ir::Domain::points)
      emit_points(unit);
    else
      emit_groups(unit);
    result.scratch_bytes = unit.scratch_bytes();
  }
  if (quick_code()) outline_masked(module);
  const std::string bits = std::to_string(target.lanes * 32);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    if (target.x86) {
      function.addFnAttr("prefer-vector-width", bits);
      function.addFnAttr("min-legal-vector-width", bits);
    }
  }
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(module, &stream))
    throw InternalError("LLVM rejects the code: " + stream.str(), lowered.name, "valid LLVM IR");
  optimise(module, machine);
  return result;
}

llvm::SmallVector<char, 0> emit_file(llvm::Module& module, llvm::TargetMachine& machine, bool assembly) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  // As LLVMTargetMachine::addPassesToEmitFile, which admits no further passes.
  auto& generator = static_cast<llvm::LLVMTargetMachine&>(machine);
  auto* const functions = new llvm::MachineModuleInfoWrapperPass(&generator);
  llvm::TargetPassConfig* const config = generator.createPassConfig(passes);
  config->setDisableVerify(true);
  const std::unique_ptr<llvm::FunctionPass> joined(llvm::createSafeStackPass());
  config->insertPass(joined->getPassID(), make_long_block_pass());
  if (longest_block(module) > kLongBlock) config->disablePass(&llvm::EarlyMachineLICMID);
  passes.add(config);
  passes.add(functions);
  const auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  bool failed = config->addISelPasses();
  config->addMachinePasses();
  config->setInitialized();
  failed = failed || generator.addAsmPrinter(passes, stream, nullptr, type, functions->getMMI().getContext());
  if (failed) throw InternalError("LLVM cannot write this file type", module.getName().str(), "object code");
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return bytes;
}

}  // namespace lockstep::compile::simd
