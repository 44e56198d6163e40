// The built-in loss by kernels against the plain reference, and its linear algebra, on the interpreter and
// the CPU.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "lockstep/error.hpp"
#include "pde/problems.hpp"
#include "pde/sixteen_bits.hpp"

namespace lockstep::pde {
namespace {

using testing::devices;
using testing::mesh_of;
using testing::random_state;
using testing::upload;

template <class T>
std::vector<std::vector<T>> gradients(const Device& device, const BoundLoss& bound) {
  std::vector<std::vector<T>> all;
  for (int level = -1; level <= 1; ++level)
    for (const char* field : {"sigma", "u"})
      if (const Buffer g = bound.gradient(field, level)) all.push_back(device.download<T>(g));
  return all;
}

template <class T>
std::vector<std::vector<T>> gradients(const reference::State<T>& s) {
  std::vector<std::vector<T>> all;
  for (size_t l = 0; l < 3; ++l) {
    all.push_back(s.sigma[l]);
    all.push_back(testing::joined(s.u[l]));
  }
  return all;
}

double largest(const std::vector<double>& v) {
  double m = 0;
  for (double x : v) m = std::max(m, std::abs(x));
  return m;
}

void expect_reference(const Device& device, const Mesh& mesh, bool masked, const LossOptions& options = {}) {
  const auto state = random_state<double>(mesh, 17);
  std::vector<double> mask;
  if (masked) {
    std::mt19937 random(2);
    for (int64_t i = 0; i < mesh.count(); ++i) mask.push_back(double(random() % 3) * 0.5);
  }
  TransportOptions t;
  t.weight_sigma = 1.3;
  t.weight_u = 0.6;
  const Loss loss(transport(3, t), mesh);
  const BoundLoss bound = loss.bind(device, upload(device, mesh, state, mask), options);
  bound.run();
  const auto expected = reference::evaluate(mesh, state, mask, 1.3, 0.6);
  const auto terms = bound.terms();
  const std::string what =
      mesh.boundary.text() + " order " + std::to_string(mesh.order) + " on " + device.info().name;
  EXPECT_NEAR(terms[0], expected.loss_sigma, 1e-12 * expected.loss_sigma) << what;
  EXPECT_NEAR(terms[1], expected.loss_u, 1e-12 * expected.loss_u) << what;
  const auto got = gradients<double>(device, bound), want = gradients(expected.gradient);
  ASSERT_EQ(got.size(), want.size());
  double scale = 0;
  for (const auto& w : want) scale = std::max(scale, largest(w));
  for (size_t k = 0; k < got.size(); ++k) {
    const double bound_abs = 1e-12 * scale;
    double worst = 0;
    for (size_t i = 0; i < got[k].size(); ++i)
      worst = std::max(worst, std::isfinite(got[k][i]) ? std::abs(got[k][i] - want[k][i]) : INFINITY);
    EXPECT_LE(worst, bound_abs) << what << " array " << k;
  }
}

TEST(Transport, EveryBoundaryEqualsTheReference) {
  for (const Device& device : devices())
    for (const std::string& b : testing::boundaries())
      expect_reference(device, mesh_of({11, 8, 9}, b), false);
}

TEST(Transport, EveryOrderEqualsTheReference) {
  for (const Device& device : devices())
    for (int order : {4, 6, 8})
      for (const char* b :
           {"periodic", "free_slip", "x=clamp,y=one_sided2,z=node_mirror", "dirichlet_face:0.3"})
        expect_reference(device, mesh_of({12, 9, 10}, b, order), false);
}

TEST(Transport, OddSizesMasksAndThinAxes) {
  const Device device = devices().back();
  expect_reference(device, mesh_of({33, 7, 5}, "free_slip"), true);
  expect_reference(device, mesh_of({1, 1, 1}, "clamp"), true);
  expect_reference(device, mesh_of({1, 1, 1}, "periodic"), false);
  expect_reference(device, mesh_of({2, 3, 1}, "periodic", 8), false);
  expect_reference(device, mesh_of({17, 1, 3}, "x=no_slip,y=clamp,z=one_sided2"), true);
  expect_reference(device, mesh_of({3, 26, 23}, "y=node_mirror,z=one_sided1", 6), false);
  expect_reference(device, mesh_of({65, 3, 2}, "ghost:1"), false);
}

TEST(Transport, SlabsChangeNoBit) {
  const Device device = devices().back();
  for (const char* b : {"periodic", "x=free_slip,y=clamp,z=one_sided2"}) {
    const Mesh mesh = mesh_of({19, 6, 23}, b, 4);
    const auto state = random_state<float>(mesh, 3);
    const Loss loss(transport(3), mesh);
    const Inputs in = upload(device, mesh, state);
    LossOptions options;
    options.path = Path::two_kernel;
    std::vector<std::vector<float>> first;
    double value = 0;
    for (int64_t slab : {23, 1, 4, 9, 22}) {
      options.slab = slab;
      const BoundLoss bound = loss.bind(device, in, options);
      bound.run();
      const auto all = gradients<float>(device, bound);
      if (first.empty()) first = all, value = bound.loss();
      EXPECT_EQ(bound.loss(), value);
      for (size_t k = 0; k < all.size(); ++k)
        EXPECT_EQ(std::vector<uint32_t>((const uint32_t*)all[k].data(),
                                        (const uint32_t*)all[k].data() + all[k].size()),
                  std::vector<uint32_t>((const uint32_t*)first[k].data(),
                                        (const uint32_t*)first[k].data() + first[k].size()))
            << b << " slab " << slab << " array " << k;
    }
  }
}

TEST(Transport, FusedIsTheSameBitsForEveryTile) {
  for (const Device& device : devices())
    for (const char* b : {"periodic", "x=free_slip,y-=clamp,y+=dirichlet_face:0.5,z=no_slip", "node_mirror",
                          "x=one_sided1,y=ghost:1,z=clamp", "x-=clamp,x+=dirichlet_face:0.5,y=reflect_odd"})
      for (bool masked : {false, true}) {
        if (masked && b != std::string("periodic")) continue;
        const Mesh mesh = mesh_of({21, 13, 15}, b);
        const auto state = random_state<float>(mesh, 12);
        std::vector<float> mask;
        for (int64_t i = 0; masked && i < mesh.count(); ++i) mask.push_back(float(i % 3));
        const Loss loss(transport(3), mesh);
        const Inputs in = upload(device, mesh, state, mask);
        LossOptions options;
        options.path = Path::two_kernel;
        const BoundLoss two = loss.bind(device, in, options);
        two.run();
        const auto expected = gradients<float>(device, two);
        options.path = Path::fused;
        struct Tile {
          int x, y, rows, chunk;
        };
        for (const Tile& t : {Tile{16, 4, 1, 64}, Tile{32, 2, 2, 5}, Tile{8, 8, 1, 4}}) {
          options.tile_x = t.x, options.tile_y = t.y, options.tile_rows = t.rows, options.chunk = t.chunk;
          const BoundLoss fused = loss.bind(device, in, options);
          ASSERT_EQ(fused.path(), Path::fused);
          fused.run();
          EXPECT_NEAR(fused.loss(), two.loss(), 1e-13 * two.loss()) << b;
          const auto got = gradients<float>(device, fused);
          for (size_t k = 0; k < got.size(); ++k)
            EXPECT_EQ(got[k], expected[k])
                << b << " tile " << t.x << "x" << t.y << " array " << k << " on " << device.info().name;
        }
      }
}

TEST(Transport, TrajectoriesAreSumsOfSingleLosses) {
  for (const Device& device : devices())
    for (const char* b : {"periodic", "x=no_slip,y=clamp,z=one_sided2"})
      for (int64_t levels : {3, 6}) {
        const Mesh mesh = mesh_of({9, 6, 11}, b);
        const Loss loss(transport(3), mesh);
        TrajectoryInputs in;
        std::mt19937 random(3);
        const Shape shape{11, 6, 9}, vectors{3, 11, 6, 9};
        for (int64_t n = 0; n < levels; ++n) {
          const auto sigma = testing::random_array<double>(random, 594),
                     u = testing::random_array<double>(random, 3 * 594);
          in.fields["sigma"].push_back(device.upload(std::span<const double>(sigma), shape));
          in.fields["u"].push_back(device.upload(std::span<const double>(u), vectors));
        }
        std::map<std::string, std::vector<std::vector<double>>> expected{{"sigma", {}}, {"u", {}}};
        for (auto& [name, list] : expected)
          list.assign(size_t(levels), std::vector<double>(name == "u" ? 3 * 594 : 594, 0.0));
        double value = 0, scale = 0;
        for (int64_t n = 1; n < levels - 1; ++n) {
          Inputs one;
          for (const char* name : {"sigma", "u"})
            for (int l = -1; l <= 1; ++l) one.fields[name][size_t(l + 1)] = in.fields[name][size_t(n + l)];
          const BoundLoss bound = loss.bind(device, one);
          bound.run();
          value += bound.loss();
          for (const char* name : {"sigma", "u"})
            for (int l = -1; l <= 1; ++l) {
              const auto g = device.download<double>(bound.gradient(name, l));
              for (size_t i = 0; i < g.size(); ++i)
                expected[name][size_t(n + l)][i] += g[i], scale = std::max(scale, std::abs(g[i]));
            }
        }
        std::vector<double> first;
        for (int64_t slab : {0, 4, 1, -1}) {
          LossOptions options;
          options.path = Path::two_kernel;
          if (slab < 0) {  // the sweeps, where they can do the boundary
            if (b != std::string("periodic")) continue;
            options.path = Path::fused;
            options.tile_x = 8, options.tile_y = 4, options.tile_rows = 2, options.chunk = 4;
          } else {
            options.slab = slab;
          }
          const BoundLoss all = loss.bind_trajectory(device, in, options);
          all.run();
          EXPECT_NEAR(all.loss(), value, 1e-13 * value);
          std::vector<double> joined;
          for (const char* name : {"sigma", "u"})
            for (int64_t n = 0; n < levels; ++n) {
              const auto g = device.download<double>(all.gradient(name, int(n)));
              for (size_t i = 0; i < g.size(); ++i)
                ASSERT_NEAR(g[i], expected[name][size_t(n)][i], 1e-13 * scale) << b << name << n;
              joined.insert(joined.end(), g.begin(), g.end());
            }
          if (first.empty()) first = joined;
          EXPECT_EQ(joined, first) << "slab " << slab;
        }
        in.fields["u"].pop_back();
        EXPECT_THROW(loss.bind_trajectory(device, in), InputError);
      }
}

// 16-bit storage: the arithmetic is that of f32 on the same values, gradients are rounded once.
TEST(Transport, SixteenBitStorageComputesInFloat) {
  const auto narrow = [](float v) { return uint16_t(std::bit_cast<uint32_t>(v) >> 16); };
  const auto widen = [](uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); };
  const auto rounded = [](float v) {
    const uint32_t bits = std::bit_cast<uint32_t>(v);
    return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  };
  testing::expect_computed_in_float<bf16>(
      mesh_of({10, 8, 9}, "x=clamp"), 1, [&](float v) { return widen(narrow(v)); }, narrow, rounded);
}

TEST(Transport, SubsetsAreTheSameBits) {
  const Device device = devices().back();
  const Mesh mesh = mesh_of({18, 9, 7}, "x=clamp,z=no_slip");
  const Inputs in = upload(device, mesh, random_state<float>(mesh, 8));
  const Loss loss(transport(3), mesh);
  const BoundLoss all = loss.bind(device, in);
  all.run();
  for (Gradients g : {Gradients::t1, Gradients::t1t2, Gradients::none}) {
    LossOptions options;
    options.gradients = g;
    const BoundLoss some = loss.bind(device, in, options);
    some.run();
    EXPECT_EQ(some.loss(), all.loss());
    for (const char* field : {"sigma", "u"})
      for (int level = -1; level <= 1; ++level) {
        const bool wanted = g != Gradients::none && (level == 0 || (level == 1 && g == Gradients::t1t2));
        ASSERT_EQ(bool(some.gradient(field, level)), wanted);
        if (wanted) {
          EXPECT_EQ(device.download<float>(some.gradient(field, level)),
                    device.download<float>(all.gradient(field, level)));
        }
      }
  }
  LossOptions only;
  only.wanted = {"u"};
  const BoundLoss u = loss.bind(device, in, only);
  EXPECT_FALSE(u.gradient("sigma", 0));
  EXPECT_TRUE(u.gradient("u", 0));
}

TEST(Transport, DeviceBitsAreEqual) {
  const auto list = devices();
  if (list.size() < 2) GTEST_SKIP() << "no CPU back end";
  for (const char* b : {"periodic", "x=free_slip,y=one_sided2,z=dirichlet_face:1"}) {
    const Mesh mesh = mesh_of({37, 5, 6}, b);
    const auto state = random_state<float>(mesh, 4);
    std::vector<std::vector<std::vector<float>>> results;
    for (const Device& device : list) {
      const Loss loss(transport(3), mesh);
      const BoundLoss bound = loss.bind(device, upload(device, mesh, state));
      bound.run();
      results.push_back(gradients<float>(device, bound));
      results.back().push_back({float(bound.loss())});
    }
    EXPECT_EQ(results[0], results[1]) << b;
  }
}

// <c, J v> = <J^T c, v> for random c and v: exact transposes in f64.
TEST(Transport, JvpAndVjpAreTransposes) {
  for (const Device& device : devices())
    for (const char* b : {"periodic", "x=dirichlet_face:2,y=one_sided2,z=no_slip", "ghost:1"})
      for (bool upwind : {false, true}) {
        const Mesh mesh = mesh_of({9, 7, 8}, b);
        TransportOptions t;
        t.upwind = upwind;
        t.viscosity = 0.1;
        t.weight_divergence = 0.4;
        t.weight_speed = 0.2;
        const Loss loss(transport(3, t), mesh);
        const auto state = random_state<double>(mesh, 21), direction = random_state<double>(mesh, 22);
        const Inputs in = upload(device, mesh, state), along = upload(device, mesh, direction);
        const Buffer jv = loss.jvp(device, in, along.fields);
        std::mt19937 random(1);
        const auto c = testing::random_array<double>(random, size_t(jv.elements()));
        const auto back = loss.vjp(device, in, device.upload(std::span<const double>(c), jv.shape()));
        const auto forward = device.download<double>(jv);
        double left = 0, right = 0, size = 0;
        for (size_t i = 0; i < c.size(); ++i) left += c[i] * forward[i], size += std::abs(c[i] * forward[i]);
        for (const auto& [name, levels] : back)
          for (size_t l = 0; l < 3; ++l) {
            if (!levels[l]) continue;
            const auto g = device.download<double>(levels[l]),
                       v = device.download<double>(along.fields.at(name)[l]);
            for (size_t i = 0; i < g.size(); ++i) right += g[i] * v[i];
          }
        EXPECT_NEAR(left, right, 1e-13 * size)
            << b << (upwind ? " upwind" : "") << " on " << device.info().name;
      }
}

TEST(Transport, FloatLiesWithinRoundingOfDouble) {
  const Device device = devices().back();
  for (const char* b : {"periodic", "x=clamp,y=no_slip,z=one_sided2"}) {
    const Mesh mesh = mesh_of({24, 11, 9}, b);
    const auto state = random_state<float>(mesh, 31);
    const Loss loss(transport(3), mesh);
    const BoundLoss bound = loss.bind(device, upload(device, mesh, state));
    bound.run();
    const auto exact = reference::evaluate(mesh, testing::convert<double>(state));
    EXPECT_NEAR(bound.loss(), exact.loss_sigma + exact.loss_u, 1e-6 * (exact.loss_sigma + exact.loss_u));
    const auto got = gradients<float>(device, bound);
    const auto want = gradients(exact.gradient);
    for (size_t k = 0; k < got.size(); ++k) {
      // Terms are bounded by the largest gradient; a few dozen roundings each.
      const double allowed = 40 * 0x1p-24 * largest(want[k]);
      for (size_t i = 0; i < got[k].size(); ++i)
        ASSERT_NEAR(got[k][i], want[k][i], allowed) << b << " array " << k;
    }
  }
}

TEST(Transport, AnalyticFieldsHaveZeroResidual) {
  const Device device = devices().back();
  for (int order : {2, 4}) {
    double previous = 0;
    for (int64_t n : {16, 32}) {
      Mesh mesh = mesh_of({n, n, n}, "periodic", order);
      const double h = 2 * 3.14159265358979323846 / double(n);
      mesh.spacing = {h, h, h};
      mesh.dt = 1e-4;
      reference::State<double> s;
      for (size_t l = 0; l < 3; ++l) {
        const double t = (double(l) - 1) * mesh.dt;
        for (int64_t z = 0; z < n; ++z)
          for (int64_t y = 0; y < n; ++y)
            for (int64_t x = 0; x < n; ++x) s.sigma[l].push_back(std::sin(h * double(x + y + z) - 3 * t));
        for (auto& c : s.u[l]) c.assign(size_t(n * n * n), 1.0);
      }
      const Loss loss(transport(3), mesh);
      LossOptions options;
      options.gradients = Gradients::none;
      const BoundLoss bound = loss.bind(device, upload(device, mesh, s), options);
      bound.run();
      const double rms = std::sqrt(bound.terms()[0]);
      EXPECT_LE(bound.terms()[1], 1e-20);
      if (previous > 0) { EXPECT_NEAR(std::log2(previous / rms), order, 0.1) << "order " << order; }
      previous = rms;
    }
  }
}

TEST(Transport, RefusesBadData) {
  const Device device = devices().front();
  const Mesh mesh = mesh_of({4, 4, 4}, "clamp");
  const System system = transport(3);
  const auto bad_mesh = [&](auto change) {
    Mesh m = mesh;
    change(m);
    EXPECT_THROW(Loss(system, m), InputError);
  };
  bad_mesh([](Mesh& m) { m.dt = 0; });
  bad_mesh([](Mesh& m) { m.dt = NAN; });
  bad_mesh([](Mesh& m) { m.spacing[1] = -1; });
  bad_mesh([](Mesh& m) { m.order = 3; });
  bad_mesh([](Mesh& m) { m.order = 10; });
  bad_mesh([](Mesh& m) { m.cells[0] = 0; });
  bad_mesh([](Mesh& m) { m.cells[2] = 2, m.boundary = BoundaryConditions::parse("one_sided2"); });
  const Loss loss(system, mesh);
  const Inputs good = upload(device, mesh, random_state<double>(mesh, 1));
  EXPECT_NO_THROW(loss.bind(device, good));
  const auto bad = [&](auto change) {
    Inputs in = good;
    change(in);
    EXPECT_THROW(loss.bind(device, in), InputError);
  };
  bad([](Inputs& in) { in.fields.erase("sigma"); });
  bad([](Inputs& in) { in.fields["u"][2] = Buffer(); });
  bad([](Inputs& in) { in.fields["w"] = in.fields["u"]; });
  bad([&](Inputs& in) { in.fields["sigma"][1] = device.allocate<double>({4, 4, 5}); });
  bad([&](Inputs& in) { in.fields["sigma"][0] = device.allocate<float>({4, 4, 4}); });
  bad([&](Inputs& in) {
    for (auto& [n, l] : in.fields)
      for (auto& b : l) b = device.allocate<int32_t>(b.shape());
  });
  bad([&](Inputs& in) { in.mask = device.allocate<double>({4, 4, 3}); });
  bad([&](Inputs& in) { in.seed = NAN; });
  bad([&](Inputs& in) { in.parameters["nu"] = 1; });
}

}  // namespace
}  // namespace lockstep::pde
