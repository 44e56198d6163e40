// The pipeline as a whole: random kernels keep their meaning with every choice of passes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "compile/lower.hpp"
#include "core/temporary_folder.hpp"
#include "helpers.hpp"
#include "runner.hpp"

using namespace lockstep;

namespace {

class Modes : public testing::TestWithParam<std::string> {
 protected:
  void TearDown() override { unsetenv("LOCKSTEP_SKIP_PASSES"); }
};

std::vector<std::string> choices() {
  std::vector<std::string> all{"", "promote,simplify,cse,licm,dead_code"};
  for (const std::string& name : compile::pass_names()) {
    all.push_back(name);
    std::string others;
    for (const std::string& other : compile::pass_names())
      if (other != name) others += other + ",";
    all.push_back(others);
  }
  return all;
}

TEST_P(Modes, RandomKernelsKeepTheirMeaning) {
  setenv("LOCKSTEP_SKIP_PASSES", GetParam().c_str(), 1);
  fuzz::Runner plain("interp"), passes("interp+passes");
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    fuzz::Recipe recipe;
    recipe.seed = seed;
    recipe.math = seed % 10 == 0;
    const fuzz::Program p = fuzz::generate(recipe);
    ASSERT_EQ(fuzz::difference(p, plain.run(p), passes.run(p)), "") << "seed " << seed << "\n"
                                                                    << ir::print(p.function);
  }
}
INSTANTIATE_TEST_SUITE_P(Skipping, Modes, testing::ValuesIn(choices()), [](const auto& choice) {
  std::string name = choice.param.empty() ? "nothing" : choice.param;
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST(Pipeline, ObservesEachPassAndSkipsWhatIsAskedFor) {
  const ir::Function f =
      traced([](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) { out[at] = exp(a[at]) * 1.0f; });
  std::vector<std::string> seen;
  compile::LowerOptions options;
  options.target = compile::Target::cpu;
  options.skip = {"licm"};
  options.observe = [&](std::string_view pass, const ir::Function&) { seen.emplace_back(pass); };
  const ir::Function lowered = compile::lower(f, options);
  EXPECT_EQ(seen, (std::vector<std::string>{"traced", "contract_fma", "expand_math", "inline", "promote",
                                            "simplify", "cse", "simplify", "cse", "dead_code"}));
  for (const auto& i : lowered.instructions) EXPECT_FALSE(ir::is_math(i.op));
}

TEST(Pipeline, SineAndCosineOfOneAngleShareItsReduction) {
  const auto branches = [](const ir::Function& f) {
    int n = 0;
    for (const auto& i : compile::lower(f, {}).instructions) n += i.op == ir::Op::if_;
    return n;
  };
  const auto one = traced([](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) { out[at] = sin(a[at]); });
  const auto both = traced([](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    const auto [s, c] = sincos(a[at]);
    out[at] = s + c;
  });
  const auto repeated = traced([](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) {
    const Val<f32> x = a[at], s = sin(x), other = sin(x + 1), c = cos(x);
    out[at] = s + other + c + sin(x);
  });
  EXPECT_EQ(branches(one), 1);
  EXPECT_EQ(branches(both), 1);
  EXPECT_EQ(branches(repeated), 3);
}

TEST(Pipeline, SameTextForTheSameKernel) {
  const auto lowered = [] {
    return ir::print(compile::lower(
        traced([](At<2> at, Grid<f32, 2> t, Out<f32, 2> out) { out[at] = t[at.x(1)] + sin(t[at.y(-1)]); }),
        {compile::Target::cuda}));
  };
  EXPECT_EQ(lowered(), lowered());
}

TEST(Pipeline, FastNumericsKeepWhatTheHardwareHas) {
  const ir::Function f =
      traced([](At<1> at, Grid<f32, 1> a, Out<f32, 1> out) { out[at] = exp(a[at]) + erf(a[at]); });
  const auto kept = [&](compile::Target target) {
    compile::LowerOptions options;
    options.target = target;
    options.numerics = Numerics::fast;
    const ir::Function lowered = compile::lower(f, options);
    return std::pair(count(lowered, ir::Op::exp), count(lowered, ir::Op::erf));
  };
  EXPECT_EQ(kept(compile::Target::cuda), (std::pair{1, 0}));
  EXPECT_EQ(kept(compile::Target::cpu), (std::pair{0, 0}));
}

TEST(Pipeline, DumpsEachPassIntoAFolder) {
  const test::TemporaryFolder folder;
  setenv("LOCKSTEP_DUMP_PASSES", folder.path().c_str(), 1);
  compile::lower(traced([](At<1> at, Out<f32, 1> out) { out[at] = 1.0f; }), {compile::Target::cpu});
  unsetenv("LOCKSTEP_DUMP_PASSES");
  EXPECT_TRUE(std::filesystem::exists(folder / "test.pass.00.traced.ir"));
  int last = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path()))
    last += file.path().filename().string().ends_with(".dead_code.ir");
  EXPECT_EQ(last, 1);
}

}  // namespace
