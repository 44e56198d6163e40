#include "compile/native/native.hpp"

#include <llvm/Config/llvm-config.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Pass.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <cstring>

#include "compile/llvm/emit.hpp"
#include "compile/llvm/long_blocks.hpp"
#include "compile/llvm/machine.hpp"
#include "compile/lower.hpp"
#include "core/files/disk_cache.hpp"
#include "core/reports/log.hpp"
#include "generator_hash.hpp"
#include "lockstep/error.hpp"

namespace lockstep::compile {

namespace simd {

namespace {

namespace orc = llvm::orc;

[[noreturn]] void fail(const std::string& kernel, const std::string& reason) {
  throw DeviceError(DeviceFault::compile, "kernel " + kernel + " on cpu: " + reason);
}
template <class T>
T expect(const std::string& kernel, llvm::Expected<T> value) {
  if (!value) fail(kernel, llvm::toString(value.takeError()));
  return std::move(*value);
}
void expect(const std::string& kernel, llvm::Error error) {
  if (error) fail(kernel, llvm::toString(std::move(error)));
}

/// Loads objects; needs no code generator.
class Loader {
 public:
  static Loader& get() {
    static Loader* loader = new Loader;  // lives as long as any kernel may
    return *loader;
  }

  orc::JITDylib& add(const std::string& kernel, llvm::ArrayRef<char> object, KernelFunction& entry) {
    orc::JITDylib& library = session_->createBareJITDylib(kernel + "#" + std::to_string(number_++));
    library.addGenerator(expect(kernel, orc::DynamicLibrarySearchGenerator::GetForCurrentProcess('\0')));
    expect(kernel, layer_->add(library, llvm::MemoryBuffer::getMemBufferCopy(
                                            llvm::StringRef(object.data(), object.size()), kernel)));
    entry = expect(kernel, session_->lookup({&library}, session_->intern("lockstep_kernel")))
                .getAddress()
                .toPtr<KernelFunction>();
    return library;
  }
  void remove(orc::JITDylib& library) { llvm::consumeError(session_->removeJITDylib(library)); }

 private:
  Loader() {
    auto control = expect("(any)", orc::SelfExecutorProcessControl::Create());
    session_ = std::make_unique<orc::ExecutionSession>(std::move(control));
    layer_ = std::make_unique<orc::ObjectLinkingLayer>(*session_);
  }
  std::unique_ptr<orc::ExecutionSession> session_;
  std::unique_ptr<orc::ObjectLinkingLayer> layer_;
  std::atomic<uint64_t> number_{0};
};

struct Loaded : NativeKernel {
  ~Loaded() override {
    if (library) Loader::get().remove(*library);
  }
  orc::JITDylib* library = nullptr;
};

/// Head of a cached object.
struct Header {
  char magic[8] = {'l', 's', 'c', 'p', 'u', '0', '0', '7'};
  int64_t scratch_bytes = 0;
};

}  // namespace

std::string native_unavailable() { return ""; }
std::string native_processor() { return host_processor().name; }
int native_lanes() {
  static const int lanes = vector_target(*make_machine("")).lanes;
  return lanes;
}

std::string_view generator_hash() { return LOCKSTEP_GENERATOR_HASH; }

std::string object_key(const ir::Function& lowered, std::string_view generator, std::string_view processor) {
  return "cpu-object " + std::string(generator) + " LLVM " + LLVM_VERSION_STRING + " " +
         std::string(processor) + " " + ir::fingerprint(lowered);
}

std::shared_ptr<NativeKernel> compile_native(const ir::Function& traced, Numerics numerics,
                                             std::string_view generator) {
  const ir::Function lowered = lower(traced, {Target::cpu, numerics});
  const HostProcessor& host = host_processor();
  const std::string key =
      object_key(lowered, generator, host.name + " " + host.features + (quick_code() ? " quick" : ""));
  DiskCache& cache = DiskCache::global();
  auto kernel = std::make_shared<Loaded>();
  Header header;
  const auto load = [&](llvm::ArrayRef<char> object) {
    kernel->library = &Loader::get().add(lowered.name, object, kernel->function);
  };

  if (const auto kept = cache.get(key); kept && kept->size() > sizeof(Header) &&
                                        std::memcmp(kept->data(), header.magic, sizeof header.magic) == 0) {
    std::memcpy(&header, kept->data(), sizeof header);
    load({reinterpret_cast<const char*>(kept->data()) + sizeof header, kept->size() - sizeof header});
    kernel->from_cache = true;
  } else {
    llvm::LLVMContext context;
    const auto machine = make_machine("");
    const GeneratedModule generated = generate(context, lowered, *machine);
    if (const size_t length = longest_block(*generated.module); length > kLongBlock)
      logging::info("kernel {}: {} instructions without a branch are compiled in pieces of {} and more",
                    lowered.name, length, kPiece);
    const llvm::SmallVector<char, 0> object = emit_file(*generated.module, *machine, false);
    header.scratch_bytes = generated.scratch_bytes;
    std::vector<std::byte> bytes(sizeof header + object.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, object.data(), object.size());
    cache.put(key, bytes);
    load(object);
  }
  kernel->scratch_bytes = header.scratch_bytes;
  return kernel;
}

}  // namespace simd

std::string emit_llvm(const ir::Function& function, Numerics numerics, bool assembly,
                      const std::string& cpu) {
  const ir::Function lowered = lower(function, {Target::cpu, numerics});
  llvm::LLVMContext context;
  const auto machine = simd::make_machine(cpu);
  const simd::GeneratedModule generated = simd::generate(context, lowered, *machine);
  std::string text;
  if (assembly) {
    const auto bytes = simd::emit_file(*generated.module, *machine, true);
    text.assign(bytes.begin(), bytes.end());
  } else {
    llvm::raw_string_ostream stream(text);
    generated.module->print(stream, nullptr);
  }
  return text;
}

BlockLengths block_lengths(const ir::Function& function, Numerics numerics, const std::string& cpu) {
  const ir::Function lowered = lower(function, {Target::cpu, numerics});
  llvm::LLVMContext context;
  const auto machine = simd::make_machine(cpu);
  const simd::GeneratedModule generated = simd::generate(context, lowered, *machine);
  llvm::Module& module = *generated.module;
  BlockLengths lengths{.generated = simd::longest_block(module)};
  llvm::legacy::PassManager passes;
  passes.add(simd::make_long_block_pass());
  passes.run(module);
  lengths.compiled = simd::longest_block(module);
  return lengths;
}

}  // namespace lockstep::compile
