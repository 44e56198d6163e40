// Jumps: exact on linear dynamics, a gain on quadratics, bit-identical restoration, cases on the devices of the host.
#include "forecast/predict/jump/jump.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "device/devices.hpp"
#include "forecast/small_models.hpp"
#include "lockstep/error.hpp"

namespace lockstep::forecast {
namespace {

class Jumps : public testing::TestWithParam<std::string> {
 protected:
  const Device& device() const { return test_device(GetParam()); }
};

/// Gradient descent: linear dynamics of three modes.
void descend(QuadraticBowl& bowl, const Buffer& loss, int steps, double rate = 0.5) {
  for (int s = 0; s < steps; ++s) {
    bowl.launch_gradient({}, loss, 0);
    primitives::axpy(bowl.device(), -rate, bowl.gradient(), bowl.parameters());
  }
}

bool accept_all(const SearchResult&) { return true; }

TEST_P(Jumps, LinearDynamicsAreExtrapolated) {
  for (const Storage storage : {Storage::f64, Storage::f32}) {
    QuadraticBowl bowl(device(), storage, {5, 1, 40});
    const Buffer loss = device().allocate(storage, {1});
    JumpEngine engine(bowl, {.snapshots = 6, .order = 3, .ridge = storage == Storage::f64 ? 1e-14 : 1e-10});
    // Modes 0.99^2, 0.93^2 and 0.5^2 a spacing; the tensor of one element has one of them.
    for (int k = 0; k < 6; ++k) {
      if (k > 0) descend(bowl, loss, 2);
      engine.push();
    }
    engine.fit();
    const std::vector<double> now = bowl.get();
    // The bowl is never better left alone, so the farthest move is taken: tau = 2.
    const SearchResult result = engine.search(
        2, Direction::path, 0, 0, [&](const Buffer& l) { bowl.launch_loss({}, l); }, accept_all);
    EXPECT_EQ(result.tau, 2);
    EXPECT_LT(result.after, result.before);
    EXPECT_EQ(result.forwards, 4);
    const std::vector<double> jumped = bowl.get();
    bowl.set(now);
    descend(bowl, loss, 8);
    const std::vector<double> walked = bowl.get();
    for (size_t i = 0; i < walked.size(); ++i)
      EXPECT_NEAR(jumped[i], walked[i], storage == Storage::f64 ? 1e-5 : 3e-4) << name(storage) << " " << i;
  }
}

// Every parameter's difference follows d' = 0.5 d + 0.2 tanh(2 d): slopes from 0.9 near 0 to 0.5 far from it. Moves are
// the recursion's own; a linear fit cannot follow both.
TEST_P(Jumps, ASharedNetworkLearnsANonlinearRecursion) {
  const auto after = [](double d) { return 0.5 * d + 0.2 * std::tanh(2 * d); };
  std::map<Directions, double> misses;
  for (const Directions directions : {Directions::ridge, Directions::mlp}) {
    QuadraticBowl bowl(device(), Storage::f64, {150, 0, 250});
    JumpEngine engine(
        bowl, {.snapshots = 6, .order = 1, .ridge = 1e-8, .directions = directions, .network_samples = 300});
    std::vector<double> x = bowl.get(), d;
    // Both tensors have the same spread, as one network is to serve them.
    for (size_t i = 0; i < x.size(); ++i) d.push_back(1.5 * std::sin(1 + 2.4 * double(i)));
    for (int k = 0; k < 6; ++k) {
      if (k > 0)
        for (size_t i = 0; i < x.size(); ++i) x[i] += d[i], d[i] = after(d[i]);
      bowl.set(x);
      engine.push();
    }
    double explained = 0;
    for (uint32_t draw = 0; draw < 8; ++draw) explained = engine.fit(draw, 1).explained;
    EXPECT_GT(explained, 0.98);
    int calls = 0;
    const auto second = [&](const Buffer& l) {
      const double value = calls++ == 2 ? 0 : 1;  // tau = 1 is the best
      device().write(l, &value, 8);
    };
    const SearchResult result = engine.search(3, Direction::path, 0, 0, second, accept_all);
    EXPECT_EQ(result.tau, 1);
    EXPECT_EQ(result.work > 0, directions == Directions::mlp);
    EXPECT_EQ(engine.network_work() > 0, directions == Directions::mlp);
    const std::vector<double> jumped = bowl.get();
    double miss = 0, most = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double exact = 0;
      for (int k = 0; k < 3; ++k) exact += d[i], d[i] = after(d[i]);
      miss = std::max(miss, std::abs(jumped[i] - x[i] - exact));
      most = std::max(most, std::abs(exact));
    }
    misses[directions] = miss / most;
  }
  EXPECT_LT(misses[Directions::mlp], 0.005);
  EXPECT_GT(misses[Directions::ridge], 0.005);
}

TEST_P(Jumps, RefusedMovesLeaveEveryBit) {
  QuadraticBowl bowl(device(), Storage::f32, {3, 1, 9000});
  std::vector<double> odd = bowl.get();
  odd[0] = -0.0, odd[1] = 1e-42;
  bowl.set(odd);
  JumpEngine engine(bowl, {.snapshots = 3});
  const Buffer loss = device().allocate<float>({1});
  for (int k = 0; k < 4; ++k) {
    if (k > 0) descend(bowl, loss, 3);
    engine.push();
  }
  bowl.set(odd);
  engine.push();
  engine.fit();
  const auto bits = [&] {
    std::vector<uint32_t> found(size_t(bowl.parameters().elements()));
    device().read(bowl.parameters(), found.data(), bowl.parameters().bytes());
    return found;
  };
  const std::vector<uint32_t> before = bits();
  EXPECT_EQ(before[0], 0x80000000u);
  // Each move makes it worse.
  int calls = 0;
  const auto worse = [&](const Buffer& l) {
    const float value = float(calls++);
    device().write(l, &value, 4);
  };
  for (const Direction direction : {Direction::path, Direction::random}) {
    calls = 0;
    const SearchResult result = engine.search(3, direction, 1, 2, worse, accept_all);
    EXPECT_EQ(result.tau, 0);
    EXPECT_EQ(result.after, result.before);
    EXPECT_EQ(bits(), before);
  }
  // A better move that is not accepted, and losses that are not finite.
  const auto with = [&](std::vector<float> losses) {
    return [&, losses, at = size_t(0)](const Buffer& l) mutable { device().write(l, &losses[at++], 4); };
  };
  EXPECT_EQ(
      engine.search(3, Direction::path, 0, 0, with({4, 3, 2, 1}), [](const SearchResult&) { return false; })
          .tau,
      0);
  EXPECT_EQ(bits(), before);
  EXPECT_EQ(engine.search(3, Direction::path, 0, 0, with({4, NAN, INFINITY, 5}), accept_all).tau, 0);
  EXPECT_EQ(bits(), before);
  EXPECT_EQ(engine.search(3, Direction::nowhere, 0, 0, with({4, 4}), accept_all).tau, 1);
  EXPECT_EQ(bits(), before);
  EXPECT_EQ(engine.search(3, Direction::path, 0, 0, with({4, 3, 5, 5}), accept_all).tau, 0.5);
  EXPECT_NE(bits(), before);
}

TEST_P(Jumps, RandomMovesHaveTheLengthOfThePath) {
  QuadraticBowl bowl(device(), Storage::f64, {4, 1, 500});
  JumpEngine engine(bowl, {.snapshots = 4, .order = 1});
  const Buffer loss = device().allocate<double>({1});
  for (int k = 0; k < 4; ++k) {
    descend(bowl, loss, 2);
    engine.push();
  }
  engine.fit();
  const std::vector<double> from = bowl.get(), lengths = engine.lengths(3);
  const auto moved_by = [&](Direction direction, uint32_t draw) {
    bowl.set(from);
    int calls = 0;
    const auto second = [&](const Buffer& l) {
      const double value = calls++ == 2 ? 0 : 1;  // tau = 1 is the best
      device().write(l, &value, 8);
    };
    EXPECT_EQ(engine.search(3, direction, draw, 9, second, accept_all).tau, 1);
    std::vector<double> to = bowl.get();
    for (size_t i = 0; i < to.size(); ++i) to[i] -= from[i];
    return to;
  };
  const std::vector<double> path = moved_by(Direction::path, 0), random = moved_by(Direction::random, 7),
                            other = moved_by(Direction::random, 8);
  const auto length = [](const std::vector<double>& x, size_t first, size_t end) {
    double sum = 0;
    for (size_t i = first; i < end; ++i) sum += x[i] * x[i];
    return std::sqrt(sum);
  };
  const size_t bounds[] = {0, 4, 5, 505};
  for (size_t t = 0; t < 3; ++t) {
    EXPECT_NEAR(length(path, bounds[t], bounds[t + 1]), lengths[t], 1e-9 * lengths[t]);
    EXPECT_NEAR(length(random, bounds[t], bounds[t + 1]), lengths[t], 1e-9 * lengths[t]);
  }
  EXPECT_NE(random, other);
  double dot = 0;
  for (size_t i = 5; i < 505; ++i) dot += random[i] * other[i];
  EXPECT_LT(std::abs(dot), 0.2 * lengths[2] * lengths[2]);
}

TEST_P(Jumps, FewSnapshotsAndEmptyTensors) {
  QuadraticBowl bowl(device(), Storage::f32, {2, 0, 3});
  JumpEngine engine(bowl, {.snapshots = 8});
  engine.push();
  EXPECT_EQ(engine.fit().explained, 0);
  const auto never = [](const Buffer&) { FAIL() << "a forward pass of no move"; };
  EXPECT_EQ(engine.search(1, Direction::path, 0, 0, never, accept_all).forwards, 0);
  const Buffer loss = device().allocate<float>({1});
  for (int count = 2; count <= 8; ++count) {
    descend(bowl, loss, 1);
    engine.push();
    engine.fit();
    EXPECT_EQ(engine.count(), count);
    const auto found = engine.search(
        1, Direction::path, 0, 0, [&](const Buffer& l) { bowl.launch_loss({}, l); },
        [](const SearchResult&) { return false; });
    EXPECT_LT(found.after, found.before * 1.0001);
  }
  EXPECT_TRUE(engine.full());
}

TEST_P(Jumps, BfloatSnapshotsStartFromTheExactParameters) {
  QuadraticBowl bowl(device(), Storage::f32, {50});
  JumpEngine engine(bowl, {.snapshots = 3, .bf16_snapshots = true, .order = 1});
  const Buffer loss = device().allocate<float>({1});
  for (int k = 0; k < 3; ++k) {
    descend(bowl, loss, 4);
    engine.push();
  }
  engine.fit();
  const SearchResult result =
      engine.search(2, Direction::path, 0, 0, [&](const Buffer& l) { bowl.launch_loss({}, l); }, accept_all);
  EXPECT_GT(result.tau, 0);
  EXPECT_LT(result.after, result.before);
}

TEST_P(Jumps, Refusals) {
  QuadraticBowl bowl(device(), Storage::f64, {2});
  EXPECT_THROW(JumpEngine(bowl, {.snapshots = 1}), InputError);
  EXPECT_THROW(JumpEngine(bowl, {.snapshots = 9}), InputError);
  EXPECT_THROW(JumpEngine(bowl, {.bf16_snapshots = true}), InputError);
  EXPECT_THROW(JumpEngine(bowl, {.order = 0}), InputError);
  EXPECT_THROW(JumpEngine(bowl, {.ridge = -1}), InputError);
  EXPECT_THROW(JumpEngine(bowl, {.snapshots = 2, .directions = Directions::mlp}), InputError);
}

INSTANTIATE_TEST_SUITE_P(Host, Jumps, testing::ValuesIn(host_devices()),
                         [](const auto& device) { return test_name(device.param); });

}  // namespace
}  // namespace lockstep::forecast
