// The order of the passes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "compile/lower.hpp"
#include "compile/passes/expressions/contract_fma.hpp"
#include "compile/passes/expressions/cse.hpp"
#include "compile/passes/expressions/expand_math.hpp"
#include "compile/passes/expressions/simplify.hpp"
#include "compile/passes/rewrite.hpp"
#include "compile/passes/structure/dead_code.hpp"
#include "compile/passes/structure/inline_calls.hpp"
#include "compile/passes/structure/licm.hpp"
#include "compile/passes/structure/promote.hpp"
#include "core/environment/environment.hpp"
#include "core/files/atomic_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::compile {

namespace {

/// The optimisations in order; their headers give the reasons. Each can be skipped by its name.
struct Optimisation {
  std::string_view name;
  void (*rewrite)(ir::Function&);
};
constexpr Optimisation kOptimisations[] = {
    {"inline", inline_small_calls},
    {"promote", promote},
    {"simplify", simplify},
    {"cse", cse},
    {"licm", licm},
    {"simplify", simplify},
    {"cse", cse},
    {"dead_code", dead_code},
};

std::string optimisation_names() {
  std::set<std::string_view> names;
  for (const Optimisation& o : kOptimisations) names.insert(o.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> skipped_by_environment() {
  std::vector<std::string> names;
  const char* text = environment::text("LOCKSTEP_SKIP_PASSES");
  std::istringstream words(text ? text : "");
  for (std::string name; std::getline(words, name, ',');) {
    if (name.empty()) continue;
    const bool known =
        std::ranges::any_of(kOptimisations, [&](const Optimisation& o) { return o.name == name; });
    if (!known)
      throw InputError(fmt::format("\"{}\"", name), "LOCKSTEP_SKIP_PASSES",
                       fmt::format("{}, with commas between them", optimisation_names()));
    names.push_back(name);
  }
  return names;
}

class Pipeline {
 public:
  Pipeline(ir::Function& f, const LowerOptions& options)
      : f_(f), options_(options), skip_(skipped_by_environment()) {
    skip_.insert(skip_.end(), options.skip.begin(), options.skip.end());
    if (const char* folder = environment::text("LOCKSTEP_DUMP_PASSES")) folder_ = folder;
#ifndef NDEBUG
    verify_ = true;
#endif
    verify_ |= options.verify_passes;
    show("traced");
  }

  /// A pass that defines the kernel's arithmetic.
  template <class Pass>
  void always(std::string_view name, Pass pass) {
    each(f_, pass);
    if (verify_) ir::verify(f_);
    show(name);
  }
  /// An optimisation.
  template <class Pass>
  void pass(std::string_view name, Pass pass) {
    if (std::find(skip_.begin(), skip_.end(), name) == skip_.end()) always(name, pass);
  }

 private:
  /// The functions that are called, then their callers.
  template <class Pass>
  static void each(ir::Function& f, Pass pass) {
    for (ir::Function& called : f.functions) each(called, pass);
    pass(f);
  }
  void show(std::string_view pass) {
    if (options_.observe) options_.observe(pass, f_);
    if (folder_.empty()) return;
    write_file(fmt::format("{}/{}.{:02}.{}.ir", folder_, f_.name, number_++, pass), ir::print(f_));
  }

  ir::Function& f_;
  const LowerOptions& options_;
  std::vector<std::string> skip_;
  std::string folder_;
  bool verify_ = false;
  int number_ = 0;
};

}  // namespace

const std::vector<std::string>& pass_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> distinct;
    for (const Optimisation& o : kOptimisations)
      if (std::find(distinct.begin(), distinct.end(), o.name) == distinct.end())
        distinct.emplace_back(o.name);
    return distinct;
  }();
  return names;
}

ir::Function lower(const ir::Function& traced, const LowerOptions& options) {
  ir::verify(traced);
  ir::Function f = traced;
  Pipeline run(f, options);
  run.always("contract_fma", contract_fma);
  run.always("expand_math", [&](ir::Function& g) { expand_math(g, options); });
  if (options.target == Target::interp) {
    compact(f);
    return f;
  }
  for (const Optimisation& o : kOptimisations) run.pass(o.name, o.rewrite);
  compact(f);
  ir::verify(f);
  return f;
}

}  // namespace lockstep::compile
