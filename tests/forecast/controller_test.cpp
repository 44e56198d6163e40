// Bandit, monitor and corrector by themselves.
#include <gtest/gtest.h>

#include <cmath>

#include "forecast/predict/policy/bandit.hpp"
#include "forecast/predict/policy/corrector.hpp"
#include "forecast/predict/policy/monitor.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

TEST(Bandit, MeanAndDeviationAreThoseOfRidgeRegression) {
  LinearBandit bandit(2, 1, 1);
  const std::vector<double> x{2};
  EXPECT_EQ(bandit.mean(1, x), 0);
  EXPECT_DOUBLE_EQ(bandit.deviation(1, x), 2);  // sqrt(2 * 1 * 2)
  bandit.learn(1, x, 5);
  EXPECT_DOUBLE_EQ(bandit.mean(1, x), 4);  // theta = 10 / (1 + 4)
  EXPECT_DOUBLE_EQ(bandit.deviation(1, x), std::sqrt(4.0 / 5));
  EXPECT_EQ(bandit.mean(0, x), 0);
  EXPECT_EQ(bandit.deviation(0, x), 0);
}

TEST(Bandit, FindsTheArmThatPaysInEachContext) {
  LinearBandit bandit(3, 2, 0.5);
  // Arm 1 pays in the first context, arm 2 in the second; else they cost 1.
  const std::vector<double> first{1, 0}, second{0, 1};
  for (int k = 0; k < 60; ++k) {
    const std::vector<double>& x = k % 2 == 0 ? first : second;
    const int arm = bandit.choose(x);
    if (arm > 0) bandit.learn(arm, x, arm == 1 + k % 2 ? 1 : -1);
  }
  EXPECT_EQ(bandit.choose(first), 1);
  EXPECT_EQ(bandit.choose(second), 2);
}

TEST(Bandit, LeavesJumpsOutWhereNonePays) {
  LinearBandit bandit(4, 2, 0.5);
  const std::vector<double> x{1, 0.3};
  int tried = 0;
  for (int k = 0; k < 100; ++k) {
    const int arm = bandit.choose(x);
    tried += arm > 0;
    if (arm > 0) bandit.learn(arm, x, -0.5);
  }
  EXPECT_EQ(bandit.choose(x), 0);
  EXPECT_LT(tried, 15);
  LinearBandit other(4, 2, 0.5);
  other.restore(bandit.state());
  EXPECT_EQ(other.choose(x), 0);
  EXPECT_THROW(LinearBandit(5, 2, 1).restore(bandit.state()), InputError);
}

/// A loss that falls to 1 with noise of 0.01.
double calm_loss(int k) { return 1 + std::exp(-k / 30.0) + 0.01 * std::sin(37.0 * k) * std::cos(11.0 * k); }

TEST(Monitor, StaysCalmOnAFallingLoss) {
  DivergenceMonitor monitor;
  for (int k = 0; k < 1000; ++k) EXPECT_EQ(monitor.observe_loss(calm_loss(k)), Verdict::calm) << k;
  EXPECT_EQ(monitor.calm(), 1000);
}

TEST(Monitor, OneHardBatchIsNoDivergence) {
  DivergenceMonitor monitor;
  for (int k = 0; k < 500; ++k) monitor.observe_loss(calm_loss(k));
  EXPECT_LT(monitor.observe_loss(calm_loss(500) + 6 * monitor.deviation()), Verdict::warning);
  for (int k = 501; k < 520; ++k) EXPECT_LT(monitor.observe_loss(calm_loss(k)), Verdict::warning);
}

TEST(Monitor, RisingLossesAreCritical) {
  DivergenceMonitor monitor;
  for (int k = 0; k < 500; ++k) monitor.observe_loss(calm_loss(k));
  Verdict worst = Verdict::calm;
  int k = 0;
  for (; k < 30 && worst != Verdict::critical; ++k)
    worst = std::max(worst, monitor.observe_loss(1 + 0.3 * k));
  EXPECT_EQ(worst, Verdict::critical);
  EXPECT_LT(k, 10);
}

TEST(Monitor, NotFiniteIsCriticalAtOnce) {
  EXPECT_EQ(DivergenceMonitor().observe_loss(NAN), Verdict::critical);
  EXPECT_EQ(DivergenceMonitor().observe_loss(INFINITY), Verdict::critical);
  EXPECT_EQ(DivergenceMonitor().observe_norm(NAN), Verdict::critical);
  EXPECT_EQ(DivergenceMonitor().observe_prediction(1, NAN, 0.5), Verdict::critical);
}

TEST(Monitor, GradientNorms) {
  DivergenceMonitor monitor;
  for (int k = 0; k < 10; ++k) EXPECT_EQ(monitor.observe_norm(2), Verdict::calm);
  EXPECT_EQ(monitor.observe_norm(150), Verdict::calm);
  EXPECT_EQ(monitor.observe_norm(250), Verdict::warning);
  EXPECT_EQ(monitor.observe_norm(2500), Verdict::critical);
  EXPECT_EQ(monitor.observe_norm(0.01), Verdict::caution);
}

// The published monitor compares |L - L^| with L: a perfect prediction is then an error of 1.
TEST(Monitor, APerfectPredictionIsCalmAndAMissedOneIsNot) {
  DivergenceMonitor monitor;
  EXPECT_EQ(monitor.observe_prediction(1, 1, 0.5), Verdict::calm);
  EXPECT_EQ(monitor.observe_prediction(1, 0.2, 0.5), Verdict::calm);  // better than predicted
  EXPECT_EQ(monitor.observe_prediction(0.7, 1, 0.5), Verdict::caution);
  EXPECT_EQ(monitor.observe_prediction(0.4, 1, 0.5), Verdict::warning);
  EXPECT_EQ(monitor.observe_prediction(0.4, 1, 1.5), Verdict::caution);  // it fell all the same
}

TEST(Monitor, TheThirdWarningIsCritical) {
  DivergenceMonitor monitor;
  EXPECT_EQ(monitor.observe_prediction(0.1, 1, 0.5), Verdict::warning);
  EXPECT_EQ(monitor.observe_prediction(0.1, 1, 0.5), Verdict::warning);
  DivergenceMonitor copy;
  copy.restore(monitor.state());
  for (DivergenceMonitor* m : {&monitor, &copy})
    EXPECT_EQ(m->observe_prediction(0.1, 1, 0.5), Verdict::critical);
  // A calm stretch between them, and they are forgotten.
  for (int k = 0; k < 2; ++k) EXPECT_EQ(monitor.observe_prediction(0.1, 1, 0.5), Verdict::warning);
  for (int k = 0; k < 50; ++k) monitor.observe_loss(1);
  EXPECT_EQ(monitor.observe_prediction(0.1, 1, 0.5), Verdict::warning);
}

TEST(Monitor, NoiseIsNoOscillationButPerfectAlternationIs) {
  DivergenceMonitor noise, swing;
  uint64_t state = 1;
  for (int k = 0; k < 400; ++k) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    EXPECT_EQ(noise.observe_loss(1 + 0.01 * double(state >> 40) / double(1 << 24)), Verdict::calm);
  }
  Verdict worst = Verdict::calm;
  for (int k = 0; k < 130; ++k) worst = std::max(worst, swing.observe_loss(k % 2 == 0 ? 1 : 1.01));
  EXPECT_GE(worst, Verdict::warning);
}

// The published corrector multiplies by 0: its cosine is fixed.
TEST(Corrector, LearnsABiasOfThePredictions) {
  ResidualCorrector corrector(2, 1);
  const std::vector<double> x{1, 0.5};
  EXPECT_EQ(corrector.correction(0, x), 0);
  for (uint64_t k = 0; k < 20; ++k) corrector.learn(k, x, 0.1);
  EXPECT_GT(corrector.correction(20, x), 0.07);
  EXPECT_LT(corrector.correction(20, x), 0.1);
  // Fading: the longer ago, the less.
  EXPECT_LT(corrector.correction(10000, x), 0.5 * corrector.correction(20, x));
}

TEST(Corrector, TellsContextsApart) {
  ResidualCorrector corrector(2, 1);
  const std::vector<double> a{1, 0}, b{0, 1};
  for (uint64_t k = 0; k < 40; ++k) {
    corrector.learn(k, a, 0.1);
    corrector.learn(k, b, -0.05);
  }
  EXPECT_GT(corrector.correction(40, a), 0.05);
  EXPECT_LT(corrector.correction(40, b), -0.02);
}

TEST(Corrector, IsBoundedAndKeepsTheLastThousand) {
  ResidualCorrector corrector(1, 0);
  const std::vector<double> x{1};
  for (uint64_t k = 0; k < 1200; ++k) corrector.learn(k, x, 5);
  EXPECT_EQ(corrector.size(), 1000);
  EXPECT_EQ(corrector.correction(1200, x), 0.2);
  corrector.learn(1200, x, NAN);
  EXPECT_EQ(corrector.correction(1200, x), 0.2);
  ResidualCorrector copy(1, 0);
  copy.restore(corrector.entries(), corrector.model());
  EXPECT_EQ(copy.correction(1300, x), corrector.correction(1300, x));
  EXPECT_THROW(copy.restore(std::vector<double>{1}, corrector.model()), InputError);
}

}  // namespace
}  // namespace lockstep::forecast
