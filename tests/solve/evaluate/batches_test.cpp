// Batches of a size of the user's, what they keep of the unsplit result, and work that is done ahead.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>

#include "device/stages/fault.hpp"
#include "problems.hpp"
#include "solve/evaluate/compile_ahead.hpp"
#include "solve/evaluate/evaluator_state.hpp"

namespace lockstep::solve::test {
namespace {

struct Evaluated {
  double cost = 0, trial = 0;
  std::vector<double> gradient, diagonal, product, jacobian, residuals;
  int64_t batches = 0;
};

Evaluated evaluate(const Problem& problem, const Device& device, Precision precision, int64_t batch_size) {
  Evaluator evaluator(problem, device, precision, {batch_size, 0});
  Evaluated out;
  out.batches = evaluator.batch_count();
  out.cost = evaluator.linearize();
  out.gradient = download_numbers(device, evaluator.gradient());
  out.diagonal = download_numbers(device, evaluator.diagonal());
  const size_t n = size_t(evaluator.tangent_size());
  const Buffer p = upload_numbers(device, evaluator.real(), random_numbers(n, 77), {int64_t(n)});
  const Buffer q = device.allocate(evaluator.real(), {int64_t(n)});
  evaluator.multiply(p, q);
  out.product = download_numbers(device, q);
  for (const HostBatch& b : evaluator.host_batches()) {
    out.jacobian.insert(out.jacobian.end(), b.jacobian.begin(), b.jacobian.end());
    out.residuals.insert(out.residuals.end(), b.residuals.begin(), b.residuals.end());
  }
  out.trial = evaluator.try_step(p);
  return out;
}

/// Poses in a ring with links to the next three: no block has more than six entries.
Problem ring_problem(int poses) {
  std::vector<double> numbers = random_numbers(size_t(poses) * 7, 5);
  normalize_rows(numbers, 7, 3, 4);
  Problem problem;
  const auto set = problem.add_blocks("poses", se3(), numbers);
  std::vector<int32_t> links;
  for (int k = 0; k < poses; ++k)
    for (int far = 1; far <= 3; ++far) links.insert(links.end(), {k, (k + far) % poses});
  std::vector<double> measured = random_numbers(links.size() / 2 * 7, 9);
  normalize_rows(measured, 7, 3, 4);
  problem.add_terms(pose_type({RobustLoss::Kind::huber, 1}), {set, set}, links, measured);
  problem.fix(set, 0);
  return problem;
}

TEST(Batches, OfAnySizeGiveTheSameBitsWhereBlocksHaveFewInstances) {
  const Problem problem = ring_problem(50);
  const Device device = Device::open("cpu");
  for (const Precision precision : {Precision::f64, Precision::f32, Precision::mixed}) {
    const Evaluated whole = evaluate(problem, device, precision, 0);
    EXPECT_EQ(whole.batches, 1);
    for (const int64_t size : {1, 7, 64, 149, 150, 1000}) {
      const Evaluated split = evaluate(problem, device, precision, size);
      EXPECT_EQ(split.batches, (150 + size - 1) / size);
      EXPECT_EQ(split.cost, whole.cost);
      EXPECT_EQ(split.trial, whole.trial);
      EXPECT_EQ(split.gradient, whole.gradient) << size;
      EXPECT_EQ(split.diagonal, whole.diagonal) << size;
      EXPECT_EQ(split.product, whole.product) << size;
      EXPECT_TRUE(split.jacobian == whole.jacobian) << size;
      EXPECT_TRUE(split.residuals == whole.residuals) << size;
    }
  }
}

TEST(Batches, OfBlocksWithManyInstancesDifferByTheGroupingOfSums) {
  const Problem problem = mixed_problem(211, 8);  // one direction sees 4 points of 5
  const Device device = Device::open("cpu");
  const Evaluated whole = evaluate(problem, device, Precision::f64, 0);
  for (const int64_t size : {1, 50, 100}) {
    const Evaluated split = evaluate(problem, device, Precision::f64, size);
    EXPECT_GT(split.batches, whole.batches);
    EXPECT_EQ(split.cost, whole.cost);
    EXPECT_TRUE(split.jacobian == whole.jacobian);
    EXPECT_TRUE(split.residuals == whole.residuals);
    ASSERT_EQ(split.gradient.size(), whole.gradient.size());
    for (size_t k = 0; k < whole.gradient.size(); ++k) {
      EXPECT_NEAR(split.gradient[k], whole.gradient[k], 1e-12 * (1 + std::abs(whole.gradient[k])));
      EXPECT_NEAR(split.diagonal[k], whole.diagonal[k], 1e-12 * (1 + std::abs(whole.diagonal[k])));
      EXPECT_NEAR(split.product[k], whole.product[k], 1e-11 * (1 + std::abs(whole.product[k])));
    }
  }
}

TEST(Batches, SmallOnesTakeLessMemory) {
  const Problem problem = ring_problem(4000);
  const auto peak = [&](int64_t batch_size) {
    const Device device = Device::open("cpu");
    evaluate(problem, device, Precision::f64, batch_size);
    return device.counters().peak_bytes;
  };
  const int64_t whole = peak(0), split = peak(1000);
  // 12 numbers of the gradient and 42 of the diagonal blocks for each of 12,000 instances, against 1,000.
  EXPECT_GT(whole - split, int64_t(11'000) * (12 + 42) * 8 * 9 / 10);
}

TEST(Batches, ReportsTellWhatWasEvaluated) {
  const Problem problem = ring_problem(50);
  const Device device = Device::open("cpu");
  Evaluator evaluator(problem, device, Precision::f64, {100, 0});
  evaluator.linearize();
  const std::vector<BatchReport> reports = evaluator.batch_reports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].name, "pose");
  EXPECT_EQ(reports[0].instances, 100);
  EXPECT_EQ(reports[1].instances, 50);
  for (const BatchReport& r : reports) {
    EXPECT_EQ(r.residuals, 6);
    EXPECT_FALSE(r.grouped);
    EXPECT_EQ(r.program, reports[0].program);
    EXPECT_GE(r.bytes, r.instances * (2 * 4 + 7 * 8));  // two offsets and seven data at least
    EXPECT_LE(r.tables_begin_s, r.tables_end_s);
    EXPECT_LE(r.tables_end_s, r.upload_begin_s);
    EXPECT_LE(r.upload_begin_s, r.upload_end_s);
    EXPECT_LE(r.upload_end_s, r.launch_s);
  }
}

/// The kernels of instances that a device has, by name.
std::multiset<std::string> kernels_of(const Device& device, const Evaluator& evaluator) {
  std::multiset<std::string> names;
  for (const KernelReport& k : device.kernels())
    for (const BatchReport& b : evaluator.batch_reports())
      if (k.name.find(b.program) != std::string::npos) {
        names.insert(k.name);
        break;
      }
  return names;
}

TEST(Batches, KernelsThatAreCompiledAheadAreThoseThatAreLaunched) {
  const Problem problem = mixed_problem(1500, 4);
  for (const Precision precision : {Precision::f64, Precision::mixed}) {
    for (const bool gradients : {false, true}) {
      const Device device = Device::open("cpu");
      Evaluator evaluator(
          problem, device, precision,
          {0, gradients ? unsigned(kUseGradient) : unsigned(kUseLinearize | kUseProduct | kUseHost)});
      evaluator.wait_for_kernels();
      const auto ahead = kernels_of(device, evaluator);
      EXPECT_GE(ahead.size(), 6u);
      const Buffer step = device.allocate(evaluator.real(), {evaluator.tangent_size()});
      device.clear(step);
      if (gradients) {
        evaluator.value_and_gradient();
        evaluator.try_gradient(step);
      } else {
        evaluator.linearize();
        evaluator.try_step(step);
        const Buffer product = device.allocate(evaluator.real(), {evaluator.tangent_size()});
        evaluator.multiply(step, product);
        evaluator.host_batches();
      }
      auto after = kernels_of(device, evaluator);
      for (const std::string& name : ahead) after.erase(after.find(name));
      // Projections of energies' Hessians are compiled when they are first launched.
      std::erase_if(after, [](const std::string& name) { return name.find("project") != std::string::npos; });
      EXPECT_TRUE(after.empty()) << *after.begin();
    }
  }
}

TEST(Batches, AFaultWhileKernelsAreCompiledAheadIsThrownByTheNextLaunch) {
  const Problem problem = ring_problem(20);
  const Device device = Device::open("cpu");
  set_fault("test.ahead:compile");
  {
    const device::StageScope stage("test.ahead");
    Evaluator evaluator(problem, device, Precision::f64, {0, kUseLinearize});
    EXPECT_THROW(
        {
          evaluator.linearize();
          evaluator.wait_for_kernels();
        },
        DeviceError);
    // A launch that waited for the same compilation may have reported the error first.
    try {
      evaluator.wait_for_kernels();
    } catch (const DeviceError& e) { EXPECT_NE(std::string(e.what()).find("injected"), std::string::npos); }
    evaluator.linearize();
  }
  set_fault("");
}

TEST(CompileAhead, WithoutThreadsTheWaitingOneDoesTheWork) {
  std::atomic<int> done{0};
  CompileAhead ahead(0);
  for (int k = 0; k < 10; ++k) ahead.add([&] { ++done; });
  ahead.wait_all();
  EXPECT_EQ(done, 10);
  DeviceInfo cpu;
  cpu.kind = DeviceKind::cpu, cpu.multiprocessors = 1;
  EXPECT_EQ(CompileAhead::threads_for(cpu), 0);
  cpu.kind = DeviceKind::cuda;
  EXPECT_GE(CompileAhead::threads_for(cpu), 1);
  const Problem problem = ring_problem(20);
  const Device alone = Device::open("cpu", {.threads = 1});
  Evaluator evaluator(problem, alone, Precision::f64, {7, kUseLinearize});
  const Evaluated whole = evaluate(problem, Device::open("cpu"), Precision::f64, 0);
  EXPECT_EQ(evaluator.linearize(), whole.cost);
  evaluator.wait_for_kernels();
}

}  // namespace
}  // namespace lockstep::solve::test
