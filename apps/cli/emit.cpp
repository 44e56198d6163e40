// `lockstep emit`: any kernel in any target, on stdout or in files.
#include "lockstep/emit.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "bound_options.hpp"
#include "commands.hpp"
#include "core/files/atomic_file.hpp"
#include "core/reports/json_text.hpp"
#include "core/reports/progress.hpp"
#include "registry.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

struct EmitOptions {
  std::string kernel, target = "ir", arch, out;
  bool list = false, all = false;
};

void describe(Schema<EmitOptions>& s) {
  using O = EmitOptions;
  s.of("cli::EmitOptions");
  s.option("kernel", &O::kernel, "name of a kernel; --list prints them").flag("KERNEL").positional();
  s.option("target", &O::target, "form",
           {{"ir", "ir"},
            {"llvm", "llvm"},
            {"asm", "asm"},
            {"cuda", "cuda"},
            {"ptx", "ptx"},
            {"cubin", "cubin"},
            {"wgsl", "wgsl"}});
  s.option("arch", &O::arch, "CUDA architecture (default sm_90), or LLVM processor (default this machine's)")
      .shown("ARCH");
  s.option("out", &O::out, "file, or folder with --all");
  s.option("list", &O::list, "print the names of all kernels");
  s.option("all", &O::all, "every kernel; exit code 1 if one does not compile");
  for (const char* option : {"target", "arch", "out"})
    s.useless(option, [](const O& o) { return o.list; }, "it has no effect with {list}", "no {list}");
  s.useless(
      "arch", [](const O& o) { return o.target == "ir" || o.target == "wgsl"; },
      "it has no effect with {target} ir or wgsl", "{target} llvm, asm, cuda, ptx or cubin");
}

std::string suffix_of(const std::string& target) {
  if (target == "asm") return "s";
  if (target == "llvm") return "ll";
  if (target == "cuda") return "cu";
  return target;
}

std::string emit(const Kernel& kernel, const EmitOptions& options, Numerics numerics) {
  return lockstep::emit(kernel, options.target, numerics, options.arch);
}

int list_kernels(const CommonOptions& common) {
  ordered_json result;
  std::string text;
  result["kernels"] = ordered_json::array();
  for (const Kernel& kernel : all_kernels()) {
    result["kernels"].push_back(kernel.name());
    text += kernel.name() + "\n";
  }
  print_result(common.json ? json_text(result, 2) : text);
  return 0;
}

int emit_one(const CommonOptions& common, const EmitOptions& options) {
  const Session session(common);
  for (const Kernel& kernel : all_kernels()) {
    if (kernel.name() != options.kernel) continue;
    const std::string code = emit(kernel, options, session.numerics());
    if (!options.out.empty()) {
      write_file(options.out, std::string_view(code));
      if (common.json)
        print_result(
            json_text({{"kernel", kernel.name()}, {"target", options.target}, {"file", options.out}}, 2));
    } else if (options.target == "cubin") {
      throw InputError("a cubin is not text", "--target cubin", "--out FILE");
    } else if (common.json) {
      print_result(json_text({{"kernel", kernel.name()}, {"target", options.target}, {"code", code}}, 2));
    } else {
      print_result(code);
    }
    return 0;
  }
  throw InputError(fmt::format("unknown kernel '{}'", options.kernel), "emit",
                   "a name that `lockstep emit --list` prints");
}

int emit_all(const CommonOptions& common, const EmitOptions& options) {
  if (options.out.empty()) throw InputError("no folder for the files", "--all", "--out DIR");
  const Session session(common);
  const std::vector<Kernel> kernels = all_kernels();
  Progress progress("emit", static_cast<int64_t>(kernels.size()), "kernels");
  ordered_json rows = ordered_json::array();
  std::string text;
  int64_t failed = 0, refused = 0;
  for (const Kernel& kernel : kernels) {
    const auto file =
        std::filesystem::path(options.out) / fmt::format("{}.{}", kernel.name(), suffix_of(options.target));
    ordered_json row = {{"kernel", kernel.name()}, {"status", "ok"}};
    try {
      write_file(file, std::string_view(emit(kernel, options, session.numerics())));
      row["file"] = file.string();
    } catch (const UnsupportedError& e) {
      // A kernel that the target cannot express (f64 in WGSL) is no failure; a missing compiler is.
      if (kernels.size() > 0 && (options.target == "wgsl" || options.target == "cuda")) {
        row["status"] = "unsupported";
        ++refused;
      } else {
        row["status"] = "failed";
        ++failed;
      }
      row["reason"] = e.what();
    } catch (const InputError&) { throw; } catch (const Error& e) {
      row["status"] = "failed";
      row["reason"] = e.what();
      ++failed;
    }
    if (row["status"] != "ok")
      text += fmt::format("{:<12} {}: {}\n", row["status"].get<std::string>(), kernel.name(),
                          row["reason"].get<std::string>());
    rows.push_back(row);
    progress.add();
  }
  const int64_t done = static_cast<int64_t>(kernels.size()) - failed - refused;
  text += fmt::format("{} of {} kernels written as {} to {}, {} unsupported, {} failed", done, kernels.size(),
                      options.target, options.out, refused, failed);
  print_result(common.json ? json_text({{"target", options.target},
                                        {"kernels", rows},
                                        {"written", done},
                                        {"unsupported", refused},
                                        {"failed", failed}},
                                       2)
                           : text);
  return failed ? 1 : 0;
}

}  // namespace

void add_emit(CommandList& commands, CLI::App& root) {
  Command& command =
      add_command(commands, root, "emit", "print a kernel as IR, LLVM, assembly, CUDA, PTX, cubin or WGSL");
  const EmitOptions& options = add_options<EmitOptions>(command);
  add_common(command, "lockstep emit --all --target cubin --arch sm_90 --out kernels");
  command.run = [&command, &options] {
    const int modes = int{options.list} + int{options.all} + int{!options.kernel.empty()};
    if (modes != 1)
      throw InputError(modes == 0 ? "no kernel" : "more than one of KERNEL, --list and --all", "emit",
                       "one of KERNEL, --list and --all");
    if (options.list) return list_kernels(command.common);
    return options.all ? emit_all(command.common, options) : emit_one(command.common, options);
  };
}

}  // namespace lockstep::cli
